-- KEYS: any; on a cluster it chooses the server whose clock to read. Returns the time in us.
return string.format('%.0f', now_us())
