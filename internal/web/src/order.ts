import { options, type VNode } from 'preact'

// Characters that turn the order of what stands beside them. Names, reasons and logs are
// strangers' texts: a line would say something else than it does.
const turning = /[\u202a-\u202e\u2066-\u2069]/g

// ordered shows these characters by their numbers, as the commands do.
export const ordered = (text: string): string => text.replace(turning, (c) => '\\u' + c.charCodeAt(0).toString(16))

// So does every text that the page draws, and what it says where the pointer rests. Fields
// that people edit have their text as it is.
const before = options.vnode
options.vnode = (v: VNode) => {
  const is = v as unknown as { type: unknown; props: unknown }
  if (is.type === null && typeof is.props === 'string') is.props = ordered(is.props)
  else if (typeof is.type === 'string') {
    const props = is.props as { title?: unknown }
    if (typeof props.title === 'string') props.title = ordered(props.title)
  }
  before?.(v)
}
