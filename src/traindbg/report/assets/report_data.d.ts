// The JSON inside the page (written by chart_json.cc). Steps are TRAIN steps throughout: an evaluation
// stands at the training step after which it ran.

/** JSON has no number for these. */
type NotFinite = "nan" | "inf" | "-inf";

interface SeriesData {
    tensor: string;
    statistic: string;
    mode: "train" | "eval" | "predict" | "global";
    worker: number;
    /** Points before thinning; `x.length` when nothing was left out. */
    recorded: number;
    x: number[];
    y: (number | NotFinite)[];
    /** The running median at each point; empty when there is none. */
    smooth: (number | null)[];
}

interface ChartData {
    title: string;
    /** Indexes into `ReportData.series`. */
    series: number[];
}

interface FindingData {
    title: string;
    severity: "info" | "warning" | "error";
    worker: number;
    first: number;
    step: number;
    last: number;
    series: number[];
}

interface ClassesData {
    tensor: string;
    mode: string;
    worker: number;
    /** Index into `ReportData.series`. */
    accuracy: number;
    /** All classes; `rows` may hold fewer. */
    classes: number;
    samples: number;
    first: number;
    last: number;
    /** Class, labels, predictions, hits. */
    rows: [number, number, number, number][];
}

interface HeatData {
    key: string;
    title: string;
    note: string;
    logarithmic: boolean;
    /** Indexes into `ReportData.tensors`. */
    rows: number[];
    /** First and last step of each column. */
    first: number[];
    last: number[];
    /** Row after row; null: nothing recorded. */
    values: (number | null)[];
    /** Indexes into `values` of cells with NaN or Inf in the tensor. */
    not_finite: number[];
}

interface ReportData {
    last_step: number;
    workers: number;
    series: SeriesData[];
    charts: ChartData[];
    findings: FindingData[];
    classes: ClassesData[];
    /** Name and module type. */
    tensors: [string, string][];
    heat: HeatData[];
}
