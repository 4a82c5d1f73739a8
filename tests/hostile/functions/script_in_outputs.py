# Tries: script in the feedback: in HTML, text, source and errors
# Stopped by: only escaped text is shown, under a policy that forbids scripts
# Status: graded
# Points: 0
# Reason: ValueError: was </pre>
# </code></pre></section><script>document.title = "@MARK@"</script>
from IPython.display import HTML, SVG, Javascript, display

SCRIPT = "</pre></code></details><script>document.title = '@MARK@'</script>"
IMAGE = "<img src=x onerror=\"document.title='@MARK@'\">"
print(SCRIPT, IMAGE, "\x1b]0;@MARK@\x07\x1b[31m", "\u202e", "&lt;script&gt;", sep="\n")
display(HTML(SCRIPT + IMAGE), Javascript("document.title = '@MARK@'"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title='@MARK@'\"></svg>"))
display({"text/plain": SCRIPT, "text/html": SCRIPT}, raw=True)


def placement(hostfile, ranks, policy):
    raise ValueError(f"was {SCRIPT}{IMAGE}")
