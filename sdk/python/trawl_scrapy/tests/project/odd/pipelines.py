class Picky:
    def process_item(self, item):
        if item.get("bad"):
            raise ValueError("a pipeline fails")
        return item
