class Own:
    """A downloader middleware that might change any request, and changes none."""

    def process_request(self, request):
        return None
