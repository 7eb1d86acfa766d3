-- stranded: chats whose oldest record has been due for a while, or whose appointment has been over for a while, and that
-- no live replica holds or waits for (D1, H10).
--
-- KEYS  1 holders
-- ARGV  1 base  2 idleMs  3 limit  4 what the names of the chats begin with, escaped; empty: all
-- Reply { chat ... }, each once. Chats somebody works on are passed over; at most a thousand of an index a call, and of
-- others' chats fifty thousand.
-- Invariants: none of its own; it only names, and grants are made elsewhere.
local call, match = redis.call, string.match
local base, limit, prefix = ARGV[1], tonumber(ARGV[3]), ARGV[4]
local clock = call('TIME')
local now_ms = math.floor(clock[1] * 1000 + clock[2] / 1000)
local before = string.format('%.0f', now_ms - tonumber(ARGV[2]))
local found, known = {}, {}

local function is_busy(chat)
  local record = call('HGET', KEYS[1], chat)
  local of = record and match(record, '^%d+ ([^|]+):')
  if of and call('EXISTS', base .. 's:' .. of) == 1 then return true end
  for _, entry in ipairs(call('LRANGE', base .. 'q:' .. chat, 0, 9)) do
    if call('EXISTS', base .. 's:' .. match(entry, '^(.*):[^:]* ')) == 1 then return true end
  end
  return false
end

-- An appointment belongs to a checkpoint: one that has expired took it along.
local function is_kept(chat)
  local row = call('HMGET', base .. 'c:' .. chat, 'c', 'x', 'w')
  return row[1] and row[3] and (row[2] == 'P' or tonumber(row[2] or 0) > now_ms)
end

local function look(index, keep)
  local from, seen, others = 0, 0, 0
  while #found < limit and seen < 1000 and others < 50000 do
    local chats = call('ZRANGEBYSCORE', index, '-inf', before, 'LIMIT', from, 100)
    if #chats == 0 then return end
    for _, chat in ipairs(chats) do
      local own = chat:sub(1, #prefix) == prefix
      if own then seen = seen + 1 else others = others + 1 end
      if not own then
        from = from + 1
      elseif not keep(chat) then
        call('ZREM', index, chat)
      else
        from = from + 1
        if not known[chat] and #found < limit and not is_busy(chat) then
          known[chat] = true
          found[#found + 1] = chat
        end
      end
    end
  end
end

local function has_records(chat)
  return call('EXISTS', base .. 'jq:' .. chat) == 1
end

look(base .. 'due', has_records)
look(base .. 'wakes', is_kept)
return found
