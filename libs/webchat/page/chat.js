// The chat page: joins what is drawn (view.js) with the connection (socket.js).
import { ChatSocket } from './socket.js'
import { language, texts } from './texts.js'
import { View } from './view.js'

const form = document.getElementById('compose')
const field = document.getElementById('text')
const attach = document.getElementById('attach')
const chosen = document.getElementById('file')

document.documentElement.lang = language
document.getElementById('text-label').textContent = texts.label
document.getElementById('send').textContent = texts.send
document.getElementById('messages').setAttribute('aria-label', texts.messages)
document.getElementById('attach-label').textContent = texts.attach
attach.title = texts.attach
field.placeholder = texts.label

const url = new URL('./ws', location.href)
url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
url.search = ''
url.hash = ''

const view = new View((text, buttonId) => {
  socket.send(text, buttonId)
  field.focus()
})
const socket = new ChatSocket(url, {
  state: (name) => view.state(name),
  message: (entry) => view.message(entry),
  pending: (entry) => view.pending(entry),
  sent: (cid) => view.note(cid, 'sent'),
  failed: (cid, nack) => view.failed(cid, nack),
  progress: (cid, part) => view.progress(cid, part),
  files: (limits) => {
    attach.hidden = limits === undefined
    chosen.accept = limits?.types.join(',') ?? ''
  },
  typing: () => view.typing(true),
})

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const text = field.value.trim()
  if (text === '') return
  field.value = ''
  grow()
  socket.send(text)
  field.focus()
})

// The button opens the browser's own dialog; the input itself stays out of sight and out of the tab order.
attach.addEventListener('click', () => chosen.click())
chosen.addEventListener('change', () => {
  const [file] = chosen.files
  if (file) socket.sendFile(file)
  // So that the same file can be chosen again.
  chosen.value = ''
  field.focus()
})
addEventListener('beforeunload', (event) => socket.uploading && event.preventDefault())

// Enter sends, Shift+Enter breaks the line; not while an input method is composing.
field.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  form.requestSubmit()
})

field.addEventListener('input', grow)
function grow() {
  field.style.height = 'auto'
  field.style.height = `${Math.min(field.scrollHeight + 2, 128)}px`
}
