"""Starts the runner as `<runtime environment>/bin/python -I <stage>`, where the stage holds this package alone."""

from worker.runner.entry import main

if __name__ == "__main__":
    main()
