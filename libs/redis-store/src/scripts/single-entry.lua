-- single-entry: the common cases of take and release for a batch of one, before anything is built for larger ones.
-- Very first part of the batch script; KEYS, ARGV and keys as batch-context says. The reply is the line itself, no array:
-- that alone costs more than two commands.
--
-- A replica with little to do sends one entry at a time, and then it is the fixed cost of a batch that counts. What is
-- decided here is what take and release decide; whatever is not a common case, or can fail in what is asked first, falls
-- through with nothing written.
if ARGV[5] == '1' then
  local call, find, match, sub = redis.call, string.find, string.match, string.sub
  local base, session, chat, field = ARGV[1], ARGV[2], ARGV[7], nil
  local entry = ARGV[8]
  if ARGV[6] == '1' then
    field = entry
    entry = ARGV[9]
  end
  local letter, rest = string.byte(entry), sub(entry, 2)
  local own = base .. 's:' .. session

  -- Server time as text, in milliseconds and in microseconds: to write a large number out costs more than a command.
  local function now()
    local clock = call('TIME')
    local parts = sub('00000' .. clock[2], -6)
    return clock[1] .. sub(parts, 1, 3), clock[1] .. parts
  end

  -- The window of time that `ms` falls into, and the one before.
  local function windows(ms)
    local epoch = math.floor(ms / WINDOW_MS)
    return base .. 't:' .. string.format('%d', epoch), base .. 't:' .. string.format('%d', epoch - 1)
  end

  -- I6: the floor as it is stored and the time; that it exceeds the chat's own last fence too is the caller's to see.
  local function fence_above(floor, us)
    if not floor or #floor == #us and floor < us then return us end
    local last = tonumber(floor) or 0
    return last < tonumber(us) and us or string.format('%.0f', last + 1)
  end

  if letter == 84 or letter == 73 then -- T, I
    local ms, us = now()
    local window, old_window = windows(ms)
    local holders = call('HMGET', KEYS[1], ' floor', chat)
    local record, ticket, holder, of = holders[2], session .. ':' .. rest, nil, nil
    if record then holder = match(record, '^%d+ ([^|]*)') end
    if holder then of = match(holder, '^(.*):') end
    -- A key counts as often as it is named, so one call tells of each: 1 the row, 2 this session, 4 the window before.
    local row, old = base .. 'c:' .. chat, old_window
    local there = call('EXISTS', row, own, own, old, old, old, old)
    local traced = call('HMGET', window, chat, field or chat)
    if there >= 4 and not (traced[1] and (traced[2] or not field)) then
      local before = call('HMGET', old_window, chat, field or chat)
      traced[1], traced[2] = traced[1] or before[1], traced[2] or before[2]
    end
    local trace = traced[1]
    if there % 4 < 2 or field and traced[2] then
      -- Left to take.
    elseif not record and (trace or there % 2 == 0) then
      local fence = fence_above(holders[1], us)
      if not (trace and (find(trace, 'P ', 1, true) or trace > fence)) then
        call('HSET', KEYS[1], chat, fence .. ' ' .. ticket, ' floor', fence)
        call('HSET', base .. 'h:' .. session, fence, chat)
        return 'G' .. fence .. ' |' .. (trace or '')
      end
    elseif of and holder ~= ticket then
      -- Another ticket holds it: in line, unless that session is dead.
      local left = call('PTTL', base .. 's:' .. of)
      if left > 0 then
        local waiting, queue = base .. 'w:' .. session, base .. 'q:' .. chat
        local id = field and sub(field, #chat + 2) or ''
        local waits = redis.pcall('HEXISTS', waiting, ticket)
        local length = waits == 0 and redis.pcall('RPUSH', queue, ticket .. ' ' .. id) or 0
        if type(waits) == 'number' and type(length) == 'number' then
          if length > QUEUE_LIMIT then
            call('RPOP', queue)
            return 'O'
          end
          if waits == 0 then
            call('HSET', waiting, ticket, chat .. ' ' .. id)
            local bar = find(record, '|', 1, true)
            if not bar then
              call('HSET', KEYS[1], chat, record .. '|W')
            elseif not find(record, 'W', bar, true) then
              call('HSET', KEYS[1], chat, record .. 'W')
            end
          end
          return 'Q' .. left .. ' ' .. of
        end
      end
    end
  elseif letter == 82 or letter == 67 or letter == 78 then -- R, C, N
    local record = call('HGET', KEYS[1], chat)
    local fence = match(rest, '^%d+')
    local flags = record and fence and find(record, fence .. ' ', 1, true) == 1 and match(record, '|?[^|]*$')
    if flags and sub(flags, 1, 1) ~= '|' then flags = '' end
    local may = letter ~= 67 or call('EXISTS', own) == 1
    if may and (flags == '' or flags == '|W') then
      local ms, us = now()
      local window, old_window = windows(ms)
      local trace = (letter == 82 and rest .. ' 0-' or rest) .. ' ' .. session
      local line, next_ticket, next_session, granted = nil, nil, nil, nil
      if flags == '|W' then
        -- A hand-off: the first in line is granted, if it is alive and nothing has to be looked up for it.
        line = not find(trace, 'P ', 1, true) and redis.pcall('LRANGE', base .. 'q:' .. chat, 0, 1)
        if not line or line.err then
          flags = nil
        elseif not line[1] then
          -- The flag may be older than the last one's leaving.
          flags = ''
        else
          local id
          next_ticket, id = match(line[1], '^(%S+) (.*)$')
          next_session = next_ticket and match(next_ticket, '^(.*):')
          granted = fence_above(call('HGET', KEYS[1], ' floor'), us)
          local known = id and id ~= '' and (call('HGET', window, chat .. ' ' .. id) or call('HGET', old_window, chat .. ' ' .. id))
          local grows = #granted > #fence or #granted == #fence and granted > fence
          if not next_session or known or not grows or (letter == 67 and ARGV[9] == chat .. ' ' .. id)
            or call('EXISTS', base .. 's:' .. next_session) == 0
            or redis.pcall('HDEL', base .. 'w:' .. next_session, next_ticket) ~= 1 then
            flags = nil
          end
        end
      end
      if flags then
        call('HDEL', base .. 'h:' .. session, fence)
        if letter == 67 then
          call('HSET', window, chat, trace, ARGV[9], ms .. ':' .. fence)
        else
          call('HSET', window, chat, trace)
        end
        if flags == '' then
          call('HDEL', KEYS[1], chat)
          return 'R'
        end
        call('LPOP', base .. 'q:' .. chat)
        call('HSET', KEYS[1], chat, granted .. ' ' .. next_ticket .. (line[2] and '|W' or ''), ' floor', granted)
        call('HSET', base .. 'h:' .. next_session, granted, chat)
        local news = 'g' .. next_ticket .. ' ' .. granted .. ' |' .. trace .. '|' .. chat
        if next_session == session then return 'R\n' .. news end
        redis.pcall('PUBLISH', base .. 'g:' .. next_session, news)
        return 'R'
      end
    end
  end
end
