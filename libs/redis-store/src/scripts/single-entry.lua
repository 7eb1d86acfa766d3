-- single-entry: the common cases of take and release for a batch of one, before anything is built for larger ones.
-- Very first part of the batch script; KEYS, ARGV, replies and keys as batch-context says.
--
-- A replica with little to do sends one entry at a time, and then it is the fixed cost of a batch that counts. What is
-- decided here is what take and release decide; whatever is not a common case falls through with nothing written.
if ARGV[5] == '1' then
  local call, find, sub = redis.call, string.find, string.sub
  local base, session, chat, field = ARGV[1], ARGV[2], ARGV[7], nil
  local entry = ARGV[8]
  if ARGV[6] == '1' then
    field = entry
    entry = ARGV[9]
  end
  local letter, rest = string.byte(entry), sub(entry, 2)
  if letter == 84 or letter == 73 then -- T, I
    local clock = call('TIME')
    local holders = call('HMGET', KEYS[1], ' floor', chat)
    if not holders[2] and call('EXISTS', base .. 's:' .. session) == 1 then
      local now_us = clock[1] * 1000000 + clock[2]
      local epoch = math.floor(now_us / 1000 / WINDOW_MS)
      local traced = call('HMGET', base .. 't:' .. epoch, chat, field or chat)
      local trace = traced[1]
      if not trace or (field and not traced[2]) then
        local old = call('HMGET', base .. 't:' .. epoch - 1, chat, field or chat)
        trace = trace or old[1]
        traced[2] = traced[2] or old[2]
      end
      local floor = tonumber(holders[1] or 0) or 0
      floor = floor < now_us and now_us or floor + 1
      local fence = string.format('%.0f', floor)
      if not (field and traced[2]) and (trace or call('EXISTS', base .. 'c:' .. chat) == 0)
        and not (trace and (find(trace, 'P ', 1, true) or trace > fence)) then
        call('HSET', KEYS[1], chat, fence .. ' ' .. session .. ':' .. rest, ' floor', fence)
        call('HSET', base .. 'h:' .. session, fence, chat)
        return { 'G' .. fence .. ' |' .. (trace or '') }
      end
    end
  elseif letter == 82 or letter == 67 or letter == 78 then -- R, C, N
    local record = call('HGET', KEYS[1], chat)
    local fence = string.match(rest, '^%d+')
    local flags = record and find(record, fence, 1, true) == 1 and string.match(record, '|?[^|]*$')
    if flags and sub(flags, 1, 1) ~= '|' then flags = '' end
    local may = letter ~= 67 or call('EXISTS', base .. 's:' .. session) == 1
    if may and (flags == '' or flags == '|W') then
      local clock = call('TIME')
      local epoch = math.floor((clock[1] * 1000 + clock[2] / 1000) / WINDOW_MS)
      local window = base .. 't:' .. epoch
      local trace = (letter == 82 and rest .. ' 0-' or rest) .. ' ' .. session
      local head, next_ticket, next_session = nil, nil, nil
      if flags == '|W' then
        -- A hand-off: the first in line is granted, if it is alive and nothing has to be looked up for it.
        head = call('LINDEX', base .. 'q:' .. chat, 0)
        local id
        if head then next_ticket, id = string.match(head, '^(%S+) (.*)$') end
        if next_ticket then next_session = string.match(next_ticket, '^(.*):') end
        -- The flag may be older than the last one's leaving.
        if not head then flags = '' end
        local known = id and id ~= '' and (call('HGET', window, chat .. ' ' .. id) or call('HGET', base .. 't:' .. epoch - 1, chat .. ' ' .. id))
        if head and (not next_ticket or known or find(trace, 'P ', 1, true) or (letter == 67 and ARGV[9] == chat .. ' ' .. id)
          or call('EXISTS', base .. 's:' .. next_session) == 0
          or call('HDEL', base .. 'w:' .. next_session, next_ticket) == 0) then
          flags = nil
        end
      end
      if flags then
        call('HDEL', base .. 'h:' .. session, fence)
        if letter == 67 then
          local ms = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
          call('HSET', window, chat, trace, ARGV[9], ms .. ':' .. fence)
        else
          call('HSET', window, chat, trace)
        end
        if flags == '' then
          call('HDEL', KEYS[1], chat)
          return { 'R' }
        end
        call('LPOP', base .. 'q:' .. chat)
        local floor = (tonumber(call('HGET', KEYS[1], ' floor') or 0) or 0) + 1
        local now_us = clock[1] * 1000000 + clock[2]
        local granted = string.format('%.0f', floor < now_us and now_us or floor)
        local waiters = call('EXISTS', base .. 'q:' .. chat) == 1
        call('HSET', KEYS[1], chat, granted .. ' ' .. next_ticket .. (waiters and '|W' or ''), ' floor', granted)
        call('HSET', base .. 'h:' .. next_session, granted, chat)
        local line = 'g' .. next_ticket .. ' ' .. granted .. ' |' .. trace .. '|' .. chat
        if next_session == session then return { 'R\n' .. line } end
        redis.pcall('PUBLISH', base .. 'g:' .. next_session, line)
        return { 'R' }
      end
    end
  end
end
