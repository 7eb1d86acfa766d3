-- take: a ticket in the chat's queue, granted at once if nobody live holds the chat.
--
-- Entry 'T<n>'   ticket '<session>:<n>' without an inbound id
--       'I<n>'   the same with one: the next look-up of the batch is its
--       'A<n>'   with more: flags (i has an inbound id, f only if free, r read, j read the journal too),
--                last message id or '', its time in ms, its journal record or ''
-- Reply 'G<fence> <revision>|<trace>[|<marks>]'   granted; marks as read_state and arrive say
--       'Q<left ms> <holder>[|<marks>]'           in line behind that session
--       'D'   an effect of the inbound id is committed; no ticket
--       'L'   the session is not alive; no ticket
--       'O'   the queue is full; no ticket
-- Idempotent by ticket: a ticket that holds or waits is answered as it stands.
-- Invariants: I1, I3, I6; a session that is not alive is given nothing.

-- What a ticket that meets a record gets; `id` is '' or the inbound id.
local function take_held(chat, record, ticket, id, only_if_free)
  local fence, holder_ticket = parse(record)
  if holder_ticket == ticket then
    local trace = trace_of(chat)
    return 'G' .. fence .. ' ' .. revision_of(chat, trace) .. '|' .. (trace or cold_trace(chat))
  end
  local of = session_of(holder_ticket)
  local left = life_ms(of)
  local waiting = base .. 'w:' .. session
  if not (only_if_free and left > 0) and call('HEXISTS', waiting, ticket) == 0 then
    local queue = base .. 'q:' .. chat
    if call('RPUSH', queue, ticket .. ' ' .. id) > QUEUE_LIMIT then
      call('RPOP', queue)
      return 'O'
    end
    call('HSET', waiting, ticket, chat .. ' ' .. id)
    flag_record(chat, record, 'W')
  end
  if left > 0 then return 'Q' .. left .. ' ' .. of end
  -- Behind a dead session: the first live ticket is granted, perhaps this one.
  fence, holder_ticket = parse(settle(chat, record_of(0, chat) or record))
  if holder_ticket == ticket then
    -- Its grant is this reply, not news.
    local news = own_news[#own_news]
    own_news[#own_news] = nil
    return 'G' .. sub(news, find(news, ' ', 1, true) + 1, -2 - #chat)
  end
  if only_if_free and call('HDEL', waiting, ticket) == 1 then
    call('LREM', base .. 'q:' .. chat, -1, ticket .. ' ' .. id)
  end
  of = session_of(holder_ticket)
  return 'Q' .. life_ms(of) .. ' ' .. of
end

-- Any take, whatever else the batch does to this chat. `field` is '<chat> <inbound id>' or nil.
local function take(k, n, field, only_if_free)
  if own_life <= 0 then return 'L' end
  local chat, ticket = ARGV[6 + k], session .. ':' .. n
  local record = record_of(k, chat)
  if not (record and sub(record, find(record, ' ', 1, true) + 1, find(record .. '|', '|', 1, true) - 1) == ticket) then
    -- A copy of a take that waits already is answered as it stands.
    if field and stamp_of(field) and call('HEXISTS', base .. 'w:' .. session, ticket) == 0 then return 'D' end
  end
  if record then return take_held(chat, record, ticket, field and sub(field, #chat + 2) or '', only_if_free) end
  return 'G' .. grant(chat, ticket, session, trace_of(chat), false)
end

-- A take that also reads the chat or notes the arrival.
local function take_with(k, n, field, at)
  local chat, flags = ARGV[6 + k], ARGV[at]
  local line = take(k, n, field, find(flags, 'f', 1, true))
  local letter = byte(line)
  if letter ~= 71 and letter ~= 81 then return line end -- G, Q
  local marks = ''
  if ARGV[at + 1] ~= '' then marks = arrive(chat, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
  if letter == 71 and find(flags, 'r', 1, true) then
    local gap, bar = find(line, ' ', 1, true), find(line, '|', 1, true)
    local may_have_row = not match(line, '^|%d+ %d+%-', bar)
    local revision, read = read_state(chat, may_have_row, find(flags, 'j', 1, true))
    if ARGV[at + 4] ~= '' then
      local user = call('HMGET', base .. 'u:' .. ARGV[at + 4], 'd', 'r')
      payloads[#payloads + 1], payloads[#payloads + 2] = user[1] or '', user[2] or ''
      read = read .. 'u'
    end
    return sub(line, 1, gap) .. revision .. sub(line, bar) .. '|' .. marks .. 'r' .. read
  end
  return line .. '|' .. marks
end
