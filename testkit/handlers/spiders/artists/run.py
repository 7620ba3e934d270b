"""Looks artists up in an API, and writes what it says into a table. Called as run.py "<task>" "<secret>"."""

import json
import os
import sys
import traceback

import psycopg2
import spotipy
from spotipy.oauth2 import SpotifyClientCredentials


def search_artist(name, mbid):
    # Surround with quotes to get exact matches
    name = '"' + name + '"'

    with open(os.devnull, "w") as null:
        # Silence spotipy's stdout...
        sys.stdout = null
        res = spotify.search(name, type="artist", limit=20)
    sys.stdout = sys.__stdout__

    with psycopg2.connect(DB) as conn:
        conn.cursor().execute("INSERT INTO artist (mbid, query, data) VALUES (%s,%s,%s)", (mbid, name, json.dumps(res)))
        conn.commit()


try:
    task_str = sys.argv[1]
    task = json.loads(task_str)
    secret_str = sys.argv[2]
    secret = json.loads(secret_str)

    CLIENT_ID = secret["CLIENT_ID"]
    CLIENT_SECRET = secret["CLIENT_SECRET"]
    DB = secret["DB"]
    client_credentials_manager = SpotifyClientCredentials(client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
    spotify = spotipy.Spotify(client_credentials_manager=client_credentials_manager)

    # This job's recipe is an array of name & mbid pairs
    recipe = json.loads(task["recipe"])
    for job in recipe:
        search_artist(job["name"], job["mbid"])

except Exception as e:
    sys.stdout = sys.__stdout__
    print(
        json.dumps(
            {
                # this task failed, and will be tried again later
                "result": 1,
                # the full stack trace, for the log
                "logs": [{"message": str(e) + traceback.format_exc(), "level": 3}],
            }
        )
    )
    quit(2)

print(json.dumps({"result": 0}))
