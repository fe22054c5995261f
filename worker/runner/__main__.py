"""Entry of the staged runner: `<runtime environment>/bin/python -I <stage>`. The stage holds this package alone."""

from worker.runner.entry import main

if __name__ == "__main__":
    main()
