-- session: opening, renewing and closing the session of the batch, and burying sessions that died.
--
-- Entry 'S<floor>', replica, process   opens it. Reply 'S', or 'L' if the name was used before
--       'H<floor>', replica, process   renews it. Reply 'H<process>' (another process that wrote for this replica id,
--                                      or ''), announcing a payload: the fences it holds; 'L' if it is not alive
--       'E<limit>'                     closes it: ends at most that many grants and tickets. Reply 'E0' done, 'E1' more
-- A session is created once and never again: renewing does not create (C3). Invariants: I1, I6 (the floor is raised to
-- the highest fence that the replica has seen, which survives a failover that lost writes: Z5).

local function lift_floor(floor)
  if floor > (fence_tail and tonumber(fence_stem) * 100 + fence_tail or tonumber(recorded[1] or 0) or 0) then
    raise_floor(floor)
  end
end

-- Ends up to `limit` grants and tickets of a session. Returns true when nothing is left.
local function clear_session(of, limit)
  local grants, tickets = base .. 'h:' .. of, base .. 'w:' .. of
  local waiting = call('HSCAN', tickets, 0, 'COUNT', limit)
  for i = 1, #waiting[2], 2 do
    local ticket, field = waiting[2][i], waiting[2][i + 1]
    local gap = find(field, ' ', 1, true)
    call('HDEL', tickets, ticket)
    call('LREM', base .. 'q:' .. sub(field, 1, gap - 1), 1, ticket .. ' ' .. sub(field, gap + 1))
  end
  local holding = call('HSCAN', grants, 0, 'COUNT', limit)
  for i = 1, #holding[2], 2 do
    local fence, chat = holding[2][i], holding[2][i + 1]
    if fence ~= '' then
      call('HDEL', grants, fence)
      local record = changed[chat]
      if record == nil then record = call('HGET', KEYS[1], chat) end
      if record and find(record, fence .. ' ', 1, true) == 1 then
        local _, _, flags = parse(record)
        traces[chat] = fence .. ' ' .. note_of(chat, flags) .. ' ' .. of
        grant_next(chat)
      end
    end
  end
  if call('HLEN', grants) > 1 or call('EXISTS', tickets) == 1 then return false end
  call('DEL', grants)
  return true
end

-- Buries sessions that have lapsed: their turns end and the next in line are granted, whoever waits or not. A few at a
-- time, and a part of what they held, so that no call takes long; those who wait do not wait for this (nudge).
local function sweep()
  local dead = call('ZRANGEBYSCORE', base .. 'sessions', '-inf', format('%.0f', now_ms), 'LIMIT', 0, 3)
  for i = 1, #dead do
    if life_ms(dead[i]) <= 0 and clear_session(dead[i], 200) then call('ZREM', base .. 'sessions', dead[i]) end
  end
end

local function open_session(floor, at)
  if not call('SET', base .. 's:' .. session, ARGV[at] .. ' ' .. ARGV[at + 1] .. ' ' .. format('%.0f', now_ms), 'NX', 'PX', lease_ms) then
    return 'L'
  end
  own_life = tonumber(lease_ms)
  local filler = string.rep('.', 70)
  call('HSET', base .. 'h:' .. session, '', filler)
  call('HSET', KEYS[1], '', filler)
  call('HSET', window, '', filler)
  call('PEXPIRE', window, format('%.0f', 2 * WINDOW_MS))
  call('ZADD', base .. 'sessions', format('%.0f', now_ms + own_life), session)
  call('SET', base .. 'p:' .. ARGV[at], ARGV[at + 1], 'PX', format('%.0f', 3 * own_life))
  lift_floor(tonumber(floor))
  sweep()
  return 'S'
end

local function renew(floor, at)
  local key = base .. 's:' .. session
  if call('PEXPIRE', key, lease_ms) == 0 then return 'L' end
  own_life = tonumber(lease_ms)
  lift_floor(tonumber(floor))
  call('ZADD', base .. 'sessions', format('%.0f', now_ms + own_life), session)
  local process = call('GET', base .. 'p:' .. ARGV[at])
  call('SET', base .. 'p:' .. ARGV[at], ARGV[at + 1], 'PX', format('%.0f', 3 * own_life))
  -- The traces and ids of this window are kept for one more; what is older goes, freed in the background.
  if call('PTTL', window) == -1 then
    call('HSET', window, '', string.rep('.', 70))
    call('PEXPIRE', window, format('%.0f', 2 * WINDOW_MS))
  end
  call('UNLINK', base .. 't:' .. epoch - 2)
  sweep()
  payloads[#payloads + 1] = table.concat(call('HKEYS', base .. 'h:' .. session), ' ')
  return 'H' .. (process and process ~= ARGV[at + 1] and process or '')
end

local function close_session(limit)
  if session == '' then return 'E0' end
  if not clear_session(session, tonumber(limit)) then return 'E1' end
  call('DEL', base .. 's:' .. session)
  call('ZREM', base .. 'sessions', session)
  own_life = -2
  return 'E0'
end
