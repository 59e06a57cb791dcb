declare module '*.css'

// The tables of docs/job-format.md, which are read when the page is bundled.
declare module 'gbatch:fields' {
  export interface Field {
    path: string
    type: string
    default?: string
    meaning: string
  }
  const fields: Field[]
  export default fields
}
