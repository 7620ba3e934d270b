from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem


class Price:
    def process_item(self, item):
        adapter = ItemAdapter(item)
        if isinstance(adapter.get("price"), str):
            adapter["price"] = float(adapter["price"].lstrip("£"))
        return item


class InStock:
    def process_item(self, item):
        if ItemAdapter(item).get("available") == 0:
            raise DropItem("out of stock")
        return item
