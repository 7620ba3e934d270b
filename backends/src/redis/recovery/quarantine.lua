-- ARGV: URLs. Removes records of which no message can be made.
for _, url in ipairs(ARGV) do
  local text = redis.call('HGET', PENDING, url)
  if text then
    quarantine(PENDING, url, text)
  end
end
return redis.status_reply('OK')
