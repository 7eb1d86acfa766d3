-- chat-state: reading and writing what belongs to a chat. Not a transition of its own: take, commit, open-state and
-- commit-state use it.
--
-- Journal: j:<chat> hash: id -> '<seq> <json>', '<id> a' -> '<attempts> <due ms>', '<id> e' -> last error;
--          jq:<chat> list of ids, oldest first; due zset: chat -> ms since when its oldest record has waited;
--          dead zset: '<chat> <id>' -> ms, dead letters (their content in hash dead-letters).
-- Appointment (ADR 8): field w of the row, ms; wakes zset: chat -> the same, the index that stranded looks at.
-- Invariants: I5 no write of a lower fence lands after a higher one has read or written; I12 no acknowledged message
-- without its effect; the oldest record of a chat is worked on first.

-- Notes an arrival: the last message, and a record if `json` is given. Returns '+' new, '=' known.
local function arrive(chat, id, ms, json)
  ids[chat .. ' '] = ms .. ' ' .. id
  local known = stamp_of(chat .. ' ' .. id)
  if json == '' then return known and '=' or '+' end
  local records = base .. 'j:' .. chat
  if known or call('HEXISTS', records, id) == 1 or call('ZSCORE', base .. 'dead', chat .. ' ' .. id) then return '=' end
  call('HSET', records, id, next_fence() .. ' ' .. json)
  if call('RPUSH', base .. 'jq:' .. chat, id) == 1 then call('ZADD', base .. 'due', format('%.0f', now_ms), chat) end
  return '+'
end

-- '<attempts> <due ms>' as '<attempts> <ms that are left>': readers do not know this server's time.
local function attempts_of(stored)
  if not stored then return '' end
  local attempts, due = match(stored, '^(%d+) (%d+)')
  return attempts .. ' ' .. format('%.0f', math.max(0, tonumber(due) - now_ms))
end

-- Adds a record's four values to the payloads; returns 'j', or 'J' if there is none.
local function read_oldest(chat)
  local id = call('LINDEX', base .. 'jq:' .. chat, 0)
  if not id then return 'J' end
  local record = call('HMGET', base .. 'j:' .. chat, id, id .. ' a', id .. ' e')
  local n = #payloads
  payloads[n + 1], payloads[n + 2], payloads[n + 3], payloads[n + 4] = id, record[1] or '', attempts_of(record[2]), record[3] or ''
  return 'j'
end

-- Adds the chat's state to the payloads. Returns the row's revision and the marks that announce the payloads:
-- c checkpoint, w ms until its appointment, m marker, j record (J none), o<n> outbox entries.
local function read_state(chat, may_have_row, journal)
  local revision, marks = '', ''
  if may_have_row then
    local row = call('HMGET', base .. 'c:' .. chat, 'r', 'x', 'c', 'm', 'y', 'w')
    local expired = row[2] and row[2] ~= 'P' and (tonumber(row[2]) or math.huge) <= now_ms
    if row[1] and not expired then revision = told_revision(row[1]) end
    if row[3] and not expired then
      marks = 'c'
      payloads[#payloads + 1] = row[3]
      if journal and row[6] then
        marks = 'cw'
        payloads[#payloads + 1] = format('%.0f', (tonumber(row[6]) or now_ms) - now_ms)
      end
    end
    if row[4] and not (row[5] and row[5] ~= 'P' and (tonumber(row[5]) or math.huge) <= now_ms) then
      marks = marks .. 'm'
      payloads[#payloads + 1] = row[4]
    end
  end
  if journal then
    marks = marks .. read_oldest(chat)
    local outbox = call('HGETALL', base .. 'o:' .. chat)
    for i = 1, #outbox do payloads[#payloads + 1] = outbox[i] end
    marks = marks .. 'o' .. #outbox
  end
  return revision, marks
end

-- The row lives as long as its checkpoint and marker do, and at least a window after the last write.
local function expire_row(row)
  local ends = call('HMGET', row, 'x', 'y')
  if ends[1] == 'P' or ends[2] == 'P' then
    call('PERSIST', row)
    return
  end
  local ms = WINDOW_MS
  for i = 1, 2 do
    local at = tonumber(ends[i] or 0)
    if at and at - now_ms > ms then ms = at - now_ms end
  end
  call('PEXPIRE', row, format('%.0f', ms))
end

local function expiry(ttl)
  return ttl == '' and 'P' or format('%.0f', now_ms + tonumber(ttl))
end

-- Acknowledges a record. Its content moves to the row, so that it can still be found: a kept answer may point to it
-- (H7). The one that the checkpoint points to (field n of the row) is not replaced by a later one.
local function acknowledge(chat, id, stamp)
  local records, queue, row = base .. 'j:' .. chat, base .. 'jq:' .. chat, base .. 'c:' .. chat
  local record = call('HGET', records, id)
  local kept = call('HMGET', row, 'k', 'n')
  if record and not (kept[1] and kept[2] and sub(kept[1], 1, #kept[2] + 1) == kept[2] .. ' ') then
    call('HSET', row, 'k', id .. ' ' .. record)
  end
  if call('LINDEX', queue, 0) == id then call('LPOP', queue) else call('LREM', queue, 1, id) end
  call('HDEL', records, id, id .. ' a', id .. ' e')
  ids[chat .. ' ' .. id] = stamp
end

-- Whether unacknowledged records remain; keeps the index of waiting chats.
local function remaining(chat)
  if call('EXISTS', base .. 'jq:' .. chat) == 1 then
    call('ZADD', base .. 'due', format('%.0f', now_ms), chat)
    return '1'
  end
  call('ZREM', base .. 'due', chat)
  return '0'
end

-- Checks and stores effects. Their arguments, from `at`:
--   0 flags      c set, x clear the checkpoint; m set, M clear the marker; u no comparison of revisions;
--                b the chat has committed many ids: its oldest go;
--                w<ms> (with c) the checkpoint's appointment; W ends it and leaves the checkpoint alone
--   1 name       the commit's, for a receipt          2 '<chat> <inbound id>' or ''
--   3 expected   revision, '' for none                4 new revision         5 checkpoint, JSON
--   6 its ttl    ms, '' for none                      7 kept record id or ''
--   8 marker     JSON                                 9 its ttl
--   10 acks, ids ...; then forgotten outbox keys, keys ...; then outbox entries, key '<status> <hash> <json>' ...
-- Returns nil if the revision differs, else the row's new revision ('' none), more ('1' records remain, '0', '-'),
-- and whether the row was written.
local function apply_effects(chat, fence, at, stamp)
  local flags, row = ARGV[at], base .. 'c:' .. chat
  local new = ARGV[at + 4]
  local set_checkpoint, clear_checkpoint = find(flags, 'c', 1, true), find(flags, 'x', 1, true)
  local now = call('HMGET', row, 'r', 'x', 'y', 'w')
  local revision = told_revision(now[1]) or ''
  if clear_checkpoint then
    -- The tombstone's revision; it is new, so that no write in flight that knew the old one gets through.
    new = (revision == '' or sub(revision, 1, 1) == '-') and revision or '-' .. revision
    if ARGV[at + 3] ~= '' and revision == '-' .. ARGV[at + 3] then new = revision end
  end
  if (set_checkpoint or clear_checkpoint) and not find(flags, 'u', 1, true) and revision ~= ARGV[at + 3] then
    local alive = now[2] and (now[2] == 'P' or (tonumber(now[2]) or math.huge) > now_ms)
    local repeated = set_checkpoint and revision == new or clear_checkpoint and revision == '-' .. ARGV[at + 3]
    if not repeated and (ARGV[at + 3] ~= '' or alive) then return nil end
  end
  local written = false
  if set_checkpoint then
    call('HSET', row, 'c', ARGV[at + 5], 'r', new, 'x', expiry(ARGV[at + 6]), 'n', ARGV[at + 7])
    written, revision = true, new
  elseif clear_checkpoint and now[1] then
    call('HDEL', row, 'c', 'x', 'n')
    call('HSET', row, 'r', new)
    written, revision = true, new
  end
  -- An appointment belongs to the checkpoint as it was written: whatever replaces or removes that ends it.
  local after = match(flags, 'w(%d+)')
  if after or now[4] and (written or find(flags, 'W', 1, true)) then appoint(chat, row, after) end
  if written and fence ~= '' then call('HSET', row, 'f', fence) end
  if find(flags, 'm', 1, true) then
    call('HSET', row, 'm', ARGV[at + 8], 'y', expiry(ARGV[at + 9]))
    written = true
  elseif find(flags, 'M', 1, true) then
    call('HDEL', row, 'm', 'y')
    written = written or now[1] ~= false
  end
  local more, next_at = '-', at + 11
  local acks = tonumber(ARGV[at + 10])
  for i = 0, acks - 1 do acknowledge(chat, ARGV[next_at + i], stamp .. ':' .. revision) end
  if acks > 0 then
    more, written = remaining(chat), true
  end
  next_at = next_at + acks
  local forgotten = tonumber(ARGV[next_at])
  for i = 1, forgotten do call('HDEL', base .. 'o:' .. chat, ARGV[next_at + i]) end
  next_at = next_at + 1 + forgotten
  local entries = tonumber(ARGV[next_at])
  for i = 1, entries do
    local key, entry = ARGV[next_at + 2 * i - 1], ARGV[next_at + 2 * i]
    local known = call('HGET', base .. 'o:' .. chat, key)
    -- A copy of an intent that arrives late does not undo what is known of the send.
    local same = known and match(known, '^%a+ (%S*)') == match(entry, '^%a+ (%S*)')
    if not (same and sub(known, 1, 5) == 'sent ' and sub(entry, 1, 5) ~= 'sent ') then
      call('HSET', base .. 'o:' .. chat, key, entry)
    end
  end
  if entries > 0 then call('PEXPIRE', base .. 'o:' .. chat, format('%.0f', math.max(WINDOW_MS, 86400000))) end
  if ARGV[at + 2] ~= '' then
    ids[ARGV[at + 2]] = stamp .. ':' .. revision
    if find(flags, 'b', 1, true) then bound_ids(chat, ARGV[at + 2]) end
  end
  -- A row that stays pinned needs no new expiry.
  if written and not (now[2] == 'P' and set_checkpoint and ARGV[at + 6] == '' and acks == 0) then expire_row(row) end
  return revision, more, written or now[1] ~= false
end
