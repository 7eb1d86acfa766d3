-- take: a ticket in the chat's queue, granted at once if nobody live holds the chat.
--
-- Entry 'T<n>'   ticket '<session>:<n>' without an inbound id
--       'I<n>'   the same with one: the next look-up of the batch is its
-- Reply 'G<fence> <revision>|<trace>'   granted
--       'Q<left ms> <holder>'           in line behind that session
--       'D'   an effect of the inbound id is committed; no ticket
--       'L'   the session is not alive; no ticket
--       'O'   the queue is full; no ticket
-- Idempotent by ticket: a ticket that holds or waits is answered as it stands.
-- Invariants: I1, I3, I6; a session that is not alive is given nothing.

-- Line of those who wait behind a live session, by session.
local queued_behind = {}

-- Whether the record is that of `ticket`.
local function is_of(record, ticket)
  local gap = find(record, ' ', 1, true)
  local from, to = find(record, ticket, gap + 1, true)
  return from == gap + 1 and (to == #record or byte(record, to + 1) == 124)
end

-- Whether a ticket of this session stands in line already.
local function waits(ticket)
  return joining[ticket] or call('HEXISTS', base .. 'w:' .. session, ticket) == 1
end

-- What a ticket that meets another's record gets; `id` is '' or the inbound id.
local function take_held(chat, record, ticket, id, only_if_free)
  local of = match(record, '^%d+ (.*):')
  local left = life_ms(of)
  if not (only_if_free and left > 0) and not waits(ticket) then
    local queue = base .. 'q:' .. chat
    if call('RPUSH', queue, ticket .. ' ' .. id) > QUEUE_LIMIT then
      call('RPOP', queue)
      return 'O'
    end
    local n = #joined
    joined[n + 1], joined[n + 2], joining[ticket] = ticket, chat .. ' ' .. id, true
    flag_record(chat, record, 'W')
  end
  if left > 0 then
    local line = queued_behind[of] or 'Q' .. left .. ' ' .. of
    queued_behind[of] = line
    return line
  end
  -- Behind a dead session: the first live ticket is granted, perhaps this one.
  local settled = settle(chat, changed[chat] or record)
  -- Nobody is left in line: this ticket was, and its id has been committed meanwhile.
  if not settled then return 'D' end
  local _, holder_ticket = parse(settled)
  if holder_ticket == ticket then
    -- Its grant is this reply, not news.
    local news = own_news[#own_news]
    own_news[#own_news] = nil
    return 'G' .. sub(news, find(news, ' ', 1, true) + 1, -2 - #chat)
  end
  write_lines()
  if only_if_free and call('HDEL', base .. 'w:' .. session, ticket) == 1 then
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
  if record and is_of(record, ticket) then
    local trace = trace_of(chat)
    return 'G' .. match(record, '^%d+') .. ' ' .. revision_of(chat, trace) .. '|' .. (trace or cold_trace(chat))
  end
  -- A copy of a take that waits already is answered as it stands.
  if field and stamp_of(field) and not waits(ticket) then return 'D' end
  if record then return take_held(chat, record, ticket, field and sub(field, #chat + 2) or '', only_if_free) end
  return 'G' .. grant(chat, ticket, session, trace_of(chat), '')
end
