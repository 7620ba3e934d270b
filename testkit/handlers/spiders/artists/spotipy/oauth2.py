class SpotifyClientCredentials:
    def __init__(self, client_id, client_secret):
        self.client_id, self.client_secret, self.token = client_id, client_secret, f"token of {client_id}"
