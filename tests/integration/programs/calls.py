"""Makes one request with each of three libraries that are instrumented, and works on until its input ends."""

import sys

import grpc
import requests
import urllib3

url, target, method = sys.argv[1:]
requests.get(url, timeout=5)
urllib3.PoolManager().request("GET", url)
with grpc.insecure_channel(target) as channel:
    channel.unary_unary(method)(b"", timeout=5)
sys.stdin.read()
