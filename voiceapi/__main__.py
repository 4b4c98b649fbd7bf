"""`python -m voiceapi`: the commands."""

from .cli import main

if __name__ == "__main__":
    main()
