// Confines this process before it runs or compiles untrusted source.
//
//   --layers N --write DIR [--read PATH]... [--memory BYTES] [--cpu-seconds N] [--processes KIND] -- COMMAND...
//
// KIND is `many` for a compiler, `one` for an interpreter, which has threads, `alone` for a program that reads and writes
// files and asks the system for nothing else. The latter two reach no state that other processes see.
//
// The process may then write DIR only, read the named paths, open no socket and inspect no other process, as far as the
// layers (those of jail.h) enforce it; the tier of the sandbox reports how far. It ends with the thread that started it.
#pragma once

// `words` are the options above. Returns null and the position of what follows `--`, or what went wrong.
extern "C" const char *confine(int count, const char *const *words, int *command);
