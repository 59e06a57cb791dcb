package importer

import "gbatch/internal/job"

// parseGPULabV1 reads GPULab's older form and says that it was converted.
func parseGPULabV1(data []byte) (job.Submission, error) {
	sub, err := job.ParseV1(data)
	if err != nil {
		return job.Submission{}, err
	}
	note := job.Note{Message: "was converted from GPULab version 1"}
	sub.Notes = append([]job.Note{note}, sub.Notes...)
	return sub, nil
}
