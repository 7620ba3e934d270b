"""As much of the library of that name as run.py uses, for the API that the scene serves."""

import json
import os
import urllib.parse
import urllib.request


class Spotify:
    def __init__(self, client_credentials_manager):
        self.token = client_credentials_manager.token
        proxy = os.environ.get("TRAWL_PROXY")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
        # The secret of the API is its address here.
        self.origin = client_credentials_manager.client_secret

    def search(self, q, type, limit):
        print("searching", q)
        query = urllib.parse.urlencode({"q": q, "type": type, "limit": limit})
        request = urllib.request.Request(f"{self.origin}/v1/search?{query}", headers={"Authorization": f"Bearer {self.token}"})
        with self.opener.open(request, timeout=60) as response:
            return json.load(response)
