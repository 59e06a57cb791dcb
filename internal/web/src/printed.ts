import { ask } from './http'

const lines = 1000
const most = 1 << 20 // characters of them that are looked at

// printedPath is where a server of notebooks says that it is: the path, with its token, of
// the last address with that port that the job has printed. Empty: it has printed none.
export async function printedPath(id: string, rank: number, port: number): Promise<string> {
  const found = new RegExp(`\\bhttps?://(?:[A-Za-z0-9.-]{1,253}|\\[[0-9a-fA-F:.]{2,45}\\]):${port}(/[!-~]{0,2000})`, 'g')
  let path = ''
  for (const m of (await tail(id, rank)).matchAll(found)) path = m[1]!.replace(/[#\\].*$/, '')
  return path.startsWith('//') ? '' : path
}

// tail is the end of what a rank has printed; empty where it cannot be read now.
async function tail(id: string, rank: number): Promise<string> {
  const stop = new AbortController()
  const answer = await ask(`/v1/jobs/${encodeURIComponent(id)}/log?tail=${lines}&rank=${rank}`, { signal: stop.signal }).catch(() => undefined)
  if (!answer?.body) return ''
  let text = ''
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  while (text.length < most) {
    const { value, done } = await reader.read().catch(() => ({ value: '', done: true }))
    if (done) return text
    text += value
  }
  stop.abort()
  return text
}
