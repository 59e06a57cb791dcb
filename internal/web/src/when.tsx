import { useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { change } from './http'
import { Time, sentence } from './words'

// When answers when some GPUs could be had, by a submission that is only tried.
export function When(props: { models: string[] }) {
  const [gpus, setGPUs] = useState('8')
  const [model, setModel] = useState('')
  const [hours, setHours] = useState('4')
  const [said, say] = useState<api.SubmitResponse>()
  const [failed, fail] = useState<unknown>()
  const ask = async (e: Event) => {
    e.preventDefault()
    say(undefined)
    fail(undefined)
    const resources = { gpus: Number(gpus), cpus: 1, cpuMemoryGb: 1, ...(model ? { gpuModel: [model] } : {}) }
    const job = { name: 'when', request: { resources, docker: { image: 'debian:12', command: 'true' }, scheduling: { maxDuration: `${Number(hours)} hours` } } }
    try {
      say(await change<api.SubmitResponse>('POST', '/v1/jobs', { job, dryRun: true }))
    } catch (e) {
      fail(e)
    }
  }
  return (
    <details>
      <summary>When could I have …?</summary>
      <form class="filters" onSubmit={ask}>
        <label>
          <span>GPUs</span>
          <input class="short" inputMode="numeric" required pattern="[0-9]+" value={gpus} onInput={(e) => setGPUs(e.currentTarget.value)} />
        </label>
        <label>
          <span>of model</span>
          <select value={model} onChange={(e) => setModel(e.currentTarget.value)}>
            <option value="">any</option>
            {props.models.map((m) => (
              <option key={m}>{m}</option>
            ))}
          </select>
        </label>
        <label>
          <span>for hours</span>
          <input class="short" inputMode="decimal" required pattern="[0-9]+(\.[0-9]+)?" value={hours} onInput={(e) => setHours(e.currentTarget.value)} />
        </label>
        <button>Ask</button>
      </form>
      <Trouble of={failed} />
      {said?.estimate && (
        <p class="reason" role="status">
          {sentence(said.estimate.text)}
          {said.estimate.at && (
            <>
              {' '}
              (<Time at={said.estimate.at} />)
            </>
          )}
        </p>
      )}
    </details>
  )
}
