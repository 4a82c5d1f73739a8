# Tries: a file of results that is nested too deeply to read
# Stopped by: a reader that copes with any depth
# Status: ungradable
# Points: 0
# Reason:
import os

with open("called.json", "w") as file:
    file.write("[" * 200_000 + "]" * 200_000)
os._exit(0)
