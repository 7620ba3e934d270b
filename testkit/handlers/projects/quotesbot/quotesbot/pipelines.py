from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem


class CleanText:
    def process_item(self, item):
        adapter = ItemAdapter(item)
        adapter["text"] = adapter["text"].strip("“”")
        return item


class DropUntagged:
    def process_item(self, item):
        if not ItemAdapter(item).get("tags"):
            raise DropItem("no tags")
        return item
