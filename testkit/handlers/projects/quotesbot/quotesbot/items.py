import scrapy


class Quote(scrapy.Item):
    text = scrapy.Field()
    author = scrapy.Field()
    born = scrapy.Field()
    tags = scrapy.Field(serializer=",".join)
    note = scrapy.Field()
