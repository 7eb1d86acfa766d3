-- batch-context: what the entries of one batch share. First part of the batch script (docs/architecture/redis-protocol.md).
--
-- A batch is one atomic call that carries many independent entries of one session. Whatever is the same for all of
-- them is done once: the time, the session's life, the floor, reading and writing the shared hashes.
--
-- KEYS  1 holders   below; every other key has the same hash tag and is made from ARGV 1
-- ARGV  1 base      '<prefix>:{<tag>}:'
--       2 session   incarnation on whose behalf the entries are sent; '' for a store without one
--       3 leaseMs   what opening and renewing a session sets
--       4 quiet     number of entries, the first ones, for which no trace is looked up: plain releases and commits
--       5 count     number of entries
--       6 checks    number of inbound ids to look up
--       7 ... 6+count                  chat of each entry
--       7+count ... 6+count+checks     '<chat> <inbound id>' for each look-up, in the order of the entries
--       then                           each entry's own arguments, one entry after the other: see the transitions; the
--                                      letter is small if another entry of the batch concerns the same chat
--
-- Replies  { lines, payload ... }: one line per entry ('!' and a message for one that failed alone), then lines
--          'g ...' or 'd ...' for other tickets of this session; payloads in the order in which lines announce them.
--          Of a single entry without payloads the lines alone, as a text
--
-- Names (chat keys, ids, sessions, revisions) are escaped by the sender: no space, line break or bar.
-- Shared hashes, a field a chat, so that one call reads or writes a whole batch (a field '' of 70 bytes keeps them
-- out of the compact encoding, whose look-ups scan):
--   holders   chat -> '<fence> <ticket>[|flags]'   who is granted it; flags: W somebody waits, P it has a row
--             ' floor' -> the shard's fence floor, which never expires
--   t:<e>     of one window of time e:
--             chat -> '<fence> <note> <session>'           the trace: the last turn that ended
--             '<chat> <id>' -> '<ms>:<fence>[:<revision>]' a committed inbound id, or '#<name>': a receipt
--             '<chat> ' -> '<ms> <id>'                     last message
--   A note is '<ids><flag>': how many ids this chat has committed lately, and what is known of its row: '-' there is none,
--   'S<revision>' a checkpoint of that revision that does not expire and nothing else, 'P' there may be anything.
-- Keys of their own:
--   s:<session>  string with a time to live: the session     sessions  zset: session -> ms when it expires
--   h:<session>  hash: fence -> chat, its grants              w:<session>  hash: ticket -> '<chat> <id>', that wait
--   q:<chat>     list of '<ticket> <id>', oldest first        p:<replica>  process that last wrote for a replica id
--   c:<chat>     hash, the row: c r x w checkpoint, revision, expiry, appointment; m y marker, expiry; f fence;
--                k kept record                            wakes        zset: chat -> ms of its appointment
--   j:<chat> jq:<chat> due  journal, see journal.lua          o:<chat>     outbox, hash: key -> '<status> <hash> <json>'
--
-- Invariants: I1 one live holder a chat, I3 grants in ticket order among live tickets, I6 fences grow.
-- A chat without a record in `holders` has no waiters: whoever removes a record grants the next ticket first.
local call, format, find, sub, match, byte = redis.call, string.format, string.find, string.sub, string.match, string.byte
local base, session, lease_ms, quiet = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local count, checks = tonumber(ARGV[5]), tonumber(ARGV[6])

-- Server time, asked once; which window of time it falls into.
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local epoch = math.floor(now_ms / WINDOW_MS)
local window, old_window = base .. 't:' .. epoch, base .. 't:' .. epoch - 1

-- As things stood at the start of the batch: records behind the floor; traces of those entries that are not quiet, in
-- their order, with committed ids behind them.
local recorded = call('HMGET', KEYS[1], ' floor', unpack(ARGV, 7, 6 + count))
local traced = quiet < count + checks and call('HMGET', window, unpack(ARGV, 7 + quiet, 6 + count + checks)) or {}
local old_traced

-- What the batch changes, by chat (false: removed), read by later entries and written at the end ...
local changed, traces, ids
-- ... and the same from the fast paths, which no other entry reads: fields and values in turn.
local set, set_n, gone, gone_n, ended, ended_n = {}, 0, {}, 0, {}, 0
local held, held_n, let_go, let_go_n = {}, 0, {}, 0
local payloads, own_news, pushes, write_pending = { '' }, nil, nil, nil
local ticket_stem, trace_end = ' ' .. session .. ':', ' 0- ' .. session
local stamp_stem = format('%.0f', now_ms) .. ':'

-- Milliseconds that the caller's session still lives: <= 0 if it is dead.
local own_life = session == '' and 0 or call('PTTL', base .. 's:' .. session)

-- I6: a hybrid clock, greater than every fence of this shard (floor), of this chat (its trace) and than the time.
-- The number is written in two parts, because formatting a large one costs more than all else that a grant does.
local fence_stem, fence_tail
local HUNDRED = '00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899'

local function raise_floor(floor)
  fence_stem = format('%.0f', math.floor(floor / 100))
  fence_tail = floor % 100
end

local function next_fence(trace)
  if not fence_tail then
    local floor = tonumber(recorded[1] or 0) or 0
    raise_floor(floor < now_us and now_us or floor + 1)
  elseif fence_tail == 99 then
    raise_floor(tonumber(fence_stem) * 100 + 100)
  else
    fence_tail = fence_tail + 1
  end
  local fence = fence_stem .. sub(HUNDRED, 2 * fence_tail + 1, 2 * fence_tail + 2)
  if trace and trace > fence then
    local last = tonumber(match(trace, '^%d+'))
    if last and last >= tonumber(fence) then
      raise_floor(last + 1)
      fence = format('%.0f', last + 1)
    end
  end
  return fence
end

-- For most of its life a mesh has but one window that is not empty.
local old_exists
local function has_old()
  if old_exists == nil then old_exists = call('EXISTS', old_window) == 1 end
  return old_exists
end

-- The window before, as it stood, by the same places: asked for all at once, and only if this window lacks something.
local function old_trace(at)
  if not old_traced then
    old_traced = has_old() and call('HMGET', old_window, unpack(ARGV, 7 + quiet, 6 + count + checks)) or {}
  end
  return old_traced[at]
end

-- The revision of a row as lines carry it. What only a broken writer puts there (a space, a bar, a line break) is escaped
-- as the sender escapes names, so that it is compared and replaced like any other.
local function told_revision(revision)
  if not revision or not find(revision, '[%s|]') then return revision end
  return (string.gsub(revision, '[%s|]', function(char) return format('\\%02x', byte(char)) end))
end

-- An id counts as committed while it is younger than the window.
local function is_fresh(stamp)
  return now_ms - (tonumber(match(stamp, '^%d+')) or 0) < WINDOW_MS
end
