class Language:
    def process_request(self, request):
        request.headers.setdefault("Accept-Language", "en-GB")
