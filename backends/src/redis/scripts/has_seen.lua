-- KEYS: crawl, then what its spider has seen and what it has itself, each plain and packed. ARGV: url, short.
return knows(seen_of(KEYS[1], 2), {{url = ARGV[1], short = ARGV[2]}})[1]
