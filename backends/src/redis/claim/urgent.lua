-- `T:urgent`: the tasks of a spider with a priority above 0 that wait in `task_queue`, the most urgent first, and
-- within a priority in the order of listing. A sorted set: the score is the negated priority, and the member
-- `<when it was listed> <crawl> <task>`. It only decides the order in which tasks begin. Entries that no longer
-- wait are removed when they are met, and records do not depend on it.

-- The crawl, the key and the record of a task that is listed in `urgent`; without a record if it no longer waits.
local function listed(urgent, member)
  local id, task = string.match(member, '^%d+ (%S+) (.*)$')
  local pending = string.match(urgent, '^{.-}') .. ':pending:' .. (id or '')
  local text = task and redis.call('HGET', pending, task)
  local record = text and parse(text)
  local waits = record and (record.state == 'n' or record.state == 'q' or record.state == 'p' and record.since <= NOW + 5000)
  return id, task, waits and record or nil, pending
end
