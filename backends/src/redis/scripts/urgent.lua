-- `T:urgent`: the tasks of a spider with a priority above 0 that wait in `task_queue`, the most urgent first, and of one priority what was
-- listed first. A sorted set: the score is the priority with its sign changed, and the member `<when it was listed> <crawl> <task>`. It
-- says only in what order tasks begin. What waits no more is removed when it is met, and a record does not depend on it.

-- The crawl, the key and the record of a task that is listed in `urgent`; without a record if it does not wait any more.
local function listed(urgent, member)
  local id, task = string.match(member, '^%d+ (%S+) (.*)$')
  local pending = string.match(urgent, '^{.-}') .. ':pending:' .. (id or '')
  local text = task and redis.call('HGET', pending, task)
  local record = text and parse(text)
  local waits = record and (record.state == 'n' or record.state == 'q' or record.state == 'p' and record.since <= NOW + 5000)
  return id, task, waits and record or nil, pending
end
