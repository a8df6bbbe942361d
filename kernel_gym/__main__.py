"""`python -m kernel_gym` is the command `kernel-gym`."""

from kernel_gym.cli.main import main

if __name__ == "__main__":
    main()
