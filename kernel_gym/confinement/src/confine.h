// Confines this process before it runs or compiles untrusted source.
//
//   --layers N --write DIR [--read PATH]... [--memory BYTES] [--cpu-seconds N] [--processes one] -- COMMAND...
//
// The process may then write DIR only, read the named paths, open no socket and inspect no other process, as far as the
// layers (those of jail.h) enforce it; the tier of the sandbox reports how far. It ends with the thread that started it.
#pragma once

// `words` are the options above. Returns null and the position of what follows `--`, or what went wrong.
extern "C" const char *confine(int count, const char *const *words, int *command);
