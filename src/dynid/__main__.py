"""python -m dynid"""

from dynid.cli import main

if __name__ == "__main__":
    main()
