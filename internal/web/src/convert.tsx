import { useState } from 'preact/hooks'
import type * as api from './api'
import { change } from './http'

const most = 1 << 20 // bytes of a file

// Converted is what became of a job file of another system.
interface Converted extends api.ConvertResponse {
  before: string // the file
}

// native is how the controller calls our own documents.
const native = 'gpulab-v2'

// useConvert turns job files of other systems into documents. What was there can be put back.
export function useConvert(put: (text: string) => void, fail: (e: unknown) => void) {
  const [done, tell] = useState<Converted>()
  const convert = async (text: string) => {
    fail(undefined)
    tell(undefined)
    try {
      if (text.length > most) throw new Error('This is more than a job file may have: 1 MiB.')
      const answer = await change<api.ConvertResponse>('POST', '/v1/convert', { text, zone: Intl.DateTimeFormat().resolvedOptions().timeZone })
      if (answer.format === native) return put(text)
      tell({ ...answer, before: text })
      put(JSON.stringify(answer.job, null, 2))
    } catch (e) {
      put(text)
      fail(e)
    }
  }
  const back = () => {
    put(done?.before ?? '')
    tell(undefined)
  }
  return { done, convert, back, open: async (file?: File) => file && convert(file.size > most ? ' '.repeat(most + 1) : await file.text()) }
}

// Conversion says what became of a file, by the words of `gsubmit --convert`.
export function Conversion(props: { of: Converted; back: () => void }) {
  const { format, notes } = props.of
  return (
    <div class="reason" role="status">
      <p>
        This was a file of {format}. Below is the job that it asks for.{' '}
        <button type="button" class="link" onClick={props.back}>
          Put the file back
        </button>
      </p>
      <ul>
        {(notes ?? []).map((n) => (
          <li key={(n.path ?? '') + n.message}>
            {n.path && <code>{n.path}</code>} {n.message}
          </li>
        ))}
      </ul>
    </div>
  )
}
