/** Files of mails that came in, for those who ask for them soon; bounded by their bytes. */
import type { MailFile } from './read-mail.js'

const SHELF_BYTES = 32 * 1024 * 1024

export class FileShelf {
  private readonly files = new Map<string, MailFile>()
  private bytes = 0

  put(mailId: string, files: readonly MailFile[]): void {
    for (const [index, file] of files.entries()) {
      const id = `${index + 1}/${mailId}`
      if (file.bytes.byteLength > SHELF_BYTES || this.files.has(id)) continue
      this.files.set(id, file)
      this.bytes += file.bytes.byteLength
    }
    for (const [id, file] of this.files) {
      if (this.bytes <= SHELF_BYTES) return
      this.files.delete(id)
      this.bytes -= file.bytes.byteLength
    }
  }

  get(id: string): MailFile | undefined {
    return this.files.get(id)
  }
}
