"""A small shop on Starlette and SQLite, as anybody would write it: nothing in here knows about tracing or profiling."""

import asyncio
import csv
import io
import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from tortoise import Tortoise, connections, fields
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.models import Model

ORDERS = 16_000
EXPORTED_PRODUCTS = 4
MAIN = "orders"
REPLICAS = [f"replica-{number}" for number in range(6)]

Rows = Any  # a list of dictionaries, as the driver gives them

SEED = f"""
INSERT INTO orders (id, day, customer, product, region, amount)
  WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ORDERS})
  SELECT n, n % 365, n * 7919 % 1201, n * 104729 % 97,
         CASE n % 4 WHEN 0 THEN 'north' WHEN 1 THEN 'east' WHEN 2 THEN 'south' ELSE 'west' END, n * 31 % 500
  FROM numbers;
"""


class Order(Model):
    """One order. Nobody thought of an index."""

    id = fields.IntField(primary_key=True)
    day = fields.IntField()
    customer = fields.IntField()
    product = fields.IntField()
    region = fields.CharField(max_length=5)
    amount = fields.IntField()

    class Meta:
        table = "orders"


replicas = itertools.cycle(REPLICAS)


def replica() -> BaseDBAsyncClient:
    """The next of the connections for reading."""
    client: BaseDBAsyncClient = connections.get(next(replicas))
    return client


async def running_total(region: str, days: int) -> Rows:
    """Adds up, for every day, all orders up to that day: quadratic, and no index helps."""
    return await replica().execute_query_dict(
        "WITH RECURSIVE days(day) AS (SELECT 1 UNION ALL SELECT day + 1 FROM days WHERE day < ?) "
        "SELECT day, (SELECT SUM(amount) FROM orders WHERE region = ? AND orders.day <= days.day) AS total FROM days",
        [days, region],
    )


async def bought_together(region: str) -> Rows:
    """Joins the orders with themselves to see which products go to the same customer."""
    return await replica().execute_query_dict(
        "SELECT a.product, b.product AS other, COUNT(*) AS times FROM orders AS a JOIN orders AS b "
        "ON a.customer = b.customer AND a.product < b.product WHERE a.region = ? "
        "GROUP BY a.product, b.product ORDER BY times DESC LIMIT 5",
        [region],
    )


async def newest_orders(region: str) -> Rows:
    """The ten newest orders of a region."""
    return await Order.filter(region=region).order_by("-id").limit(10).values("id", "product", "amount")


async def product_pages(region: str) -> AsyncIterator[Rows]:
    """Each product's orders with how often it sold again later: one page after the other."""
    for product in range(EXPORTED_PRODUCTS):
        yield await replica().execute_query_dict(
            "SELECT id, product, amount, (SELECT COUNT(*) FROM orders AS later WHERE later.day > orders.day "
            "AND later.product = orders.product AND later.region = orders.region) AS later_sales "
            "FROM orders WHERE region = ? AND product = ? ORDER BY amount DESC",
            [region, product],
        )


async def collect(pages: AsyncIterator[Rows]) -> Rows:
    """All rows of all pages."""
    rows = []
    async for page in pages:
        rows.extend(page)
    return rows


def render_csv(rows: Rows) -> str:
    """Rows as CSV; busy enough to be worth a thread of its own."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: (row["product"], -row["amount"])))
    return out.getvalue()


async def dashboard(request: Request) -> Response:
    """Three queries side by side, each in a task of its own."""
    region, days = request.path_params["region"], int(request.query_params.get("days", 120))
    total, together, newest = await asyncio.gather(
        running_total(region, days), bought_together(region), newest_orders(region)
    )
    return JSONResponse({"total": total[-1]["total"], "together": together, "newest": newest})


async def export(request: Request) -> Response:
    """Reads the pages in a task group and renders them in a worker thread."""
    region = request.path_params["region"]
    async with asyncio.TaskGroup() as group:
        rows = group.create_task(collect(product_pages(region)))
        total = group.create_task(running_total(region, 60))
    text = await asyncio.to_thread(render_csv, rows.result())
    return PlainTextResponse(text, headers={"X-Total": str(total.result()[-1]["total"])})


async def order(request: Request) -> Response:
    """One order by its key: slow only when it has to wait for the connection."""
    found = await Order.filter(id=request.path_params["id"]).values()
    return JSONResponse(found[0] if found else None, status_code=200 if found else 404)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Makes the database and its connections, and removes everything at the end."""
    with tempfile.TemporaryDirectory(prefix="shop-") as directory:
        databases = dict.fromkeys([MAIN, *REPLICAS], f"sqlite://{Path(directory) / 'shop.db'}")
        models = {"shop": {"models": [__name__], "default_connection": MAIN}}
        await Tortoise.init({"connections": databases, "apps": models}, _enable_global_fallback=True)
        await Tortoise.generate_schemas()
        await connections.get(MAIN).execute_script(SEED)
        try:
            yield
        finally:
            await Tortoise.close_connections()


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/dashboard/{region}", dashboard),
        Route("/export/{region}", export),
        Route("/orders/{id:int}", order),
    ],
)
