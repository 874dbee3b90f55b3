"""Functions, files and tasks whose names use one, two and four bytes a character, and are long."""

import asyncio

from targets.support import burn, phase

FUNCTIONS = ["café", "запрос", "検索", "𐐨𐐩𐐪", "_".join(["long"] * 250)]
FILES = ["/srv/café.py", "/srv/запрос.py", "/srv/検索.py", "/srv/🐍.py", "/srv/" + "deep/" * 60 + "file.py"]


async def main() -> None:
    with phase():
        for function, file in zip(FUNCTIONS, FILES, strict=True):
            namespace = {"burn": burn, "sleep": asyncio.sleep}
            exec(compile(f"async def {function}(): await sleep(0); burn(0.1)", file, "exec"), namespace)
            await asyncio.create_task(namespace[function](), name=f"task {function[:20]}")
