-- KEYS: pending. ARGV: URLs. Removes records of which no message can be made.
for _, url in ipairs(ARGV) do
  local text = redis.call('HGET', KEYS[1], url)
  if text then
    quarantine(KEYS[1], url, text)
  end
end
return redis.status_reply('OK')
