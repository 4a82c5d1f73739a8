"""What axe-core finds on a page in the browser (https://github.com/dequelabs/axe-core)."""

GRAVE = ("serious", "critical")


def grave_findings(page, within=None):
    """axe-core's serious and critical findings on a Playwright page, light and dark, as lines.

    within   a CSS selector: only what is in these elements.
    """
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        findings = Axe().run(page, context=within).response["violations"]
        found += [
            f"{scheme}: {finding['id']}: {node['target']}: {node['failureSummary']}"
            for finding in findings
            if finding["impact"] in GRAVE
            for node in finding["nodes"]
        ]
    return found
