/** Bytes on their way to Meta: how many, and what they are. Shared by the three messengers. */
import { SendError, type Media, type OutgoingContent } from '@botmesh/core'

export type OutgoingMedia = NonNullable<OutgoingContent['media']>

/** The largest file of each kind, in bytes. */
export type UploadLimits = Readonly<Record<Media['kind'], number>>

export const MIB = 1024 * 1024

const DEFAULT_TYPES: Readonly<Record<Media['kind'], string>> = {
  image: 'image/jpeg',
  audio: 'audio/ogg',
  video: 'video/mp4',
  document: 'application/octet-stream',
  sticker: 'image/webp',
}

export function mimeTypeOf(media: OutgoingMedia): string {
  return media.mimeType ?? DEFAULT_TYPES[media.kind]
}

/** The file's part of an upload form. Call `refuseLargeUpload` before. */
export function fileOf(media: OutgoingMedia): { blob: Blob; name: string } {
  const blob = new Blob([Buffer.from(media.data ?? new Uint8Array())], { type: mimeTypeOf(media) })
  return { blob, name: media.fileName ?? media.kind }
}

/** @throws SendError `final` before a byte is sent, if the platform would refuse the file for its size. */
export function refuseLargeUpload(provider: string, media: OutgoingMedia, limits: UploadLimits): void {
  const bytes = media.data?.byteLength ?? 0
  const most = limits[media.kind]
  if (bytes <= most) return
  throw new SendError(
    `The ${media.kind} has ${bytes} bytes, the platform takes ${most}: send a smaller one, or a link in the text.`,
    { provider, outcome: 'final' },
  )
}
