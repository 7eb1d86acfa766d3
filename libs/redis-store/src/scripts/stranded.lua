-- stranded: chats whose oldest record has been due for a while and that no live replica holds or waits for (D1).
--
-- KEYS  1 holders
-- ARGV  1 base  2 idleMs  3 limit
-- Reply { chat ... }. Chats somebody works on are looked at again later: their place in the index moves back, so that
-- they never hide the stranded ones behind them.
-- Invariants: I12 needs it: a record whose replica died is found again. Changes nothing but the index.
local call, match = redis.call, string.match
local base, limit = ARGV[1], tonumber(ARGV[3])
local clock = call('TIME')
local now_ms = math.floor(clock[1] * 1000 + clock[2] / 1000)
local found, seen = {}, 0
while #found < limit and seen < 1000 do
  local before = string.format('%.0f', now_ms - tonumber(ARGV[2]))
  local chats = call('ZRANGEBYSCORE', base .. 'due', '-inf', before, 'LIMIT', #found, limit)
  if #chats == 0 then break end
  for _, chat in ipairs(chats) do
    seen = seen + 1
    local record = call('HGET', KEYS[1], chat)
    local of = record and match(record, '^%d+ ([^|]+):')
    local busy = of and call('EXISTS', base .. 's:' .. of) == 1
    if not busy then
      for _, entry in ipairs(call('LRANGE', base .. 'q:' .. chat, 0, 9)) do
        busy = busy or call('EXISTS', base .. 's:' .. match(entry, '^(.*):[^:]* ')) == 1
      end
    end
    if busy then
      call('ZADD', base .. 'due', string.format('%.0f', now_ms), chat)
    elseif #found < limit then
      found[#found + 1] = chat
    end
  end
end
return found
