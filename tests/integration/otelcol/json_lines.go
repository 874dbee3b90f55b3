// OTLP/JSON as the Collector's own components have it: the file receiver takes each line for a message, the file exporter
// writes each message as a line.
package main

import (
	"bufio"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const mostBytesOfLine = 64 << 20

func jsonLines() *cobra.Command {
	return &cobra.Command{
		Use:   "json-lines",
		Short: "Reads traces and profiles from stdin as the file receiver does, and writes them as the file exporter does",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return rewrite(os.Stdin, os.Stdout) },
	}
}

func rewrite(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostBytesOfLine)
	for lines.Scan() {
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(lines.Bytes())
		if err != nil {
			return err
		}
		if traces.ResourceSpans().Len() > 0 {
			if err := write(out, func() ([]byte, error) { return new(ptrace.JSONMarshaler).MarshalTraces(traces) }); err != nil {
				return err
			}
		}
		profiles, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles(lines.Bytes())
		if err != nil {
			return err
		}
		if profiles.ResourceProfiles().Len() > 0 {
			if err := write(out, func() ([]byte, error) { return new(pprofile.JSONMarshaler).MarshalProfiles(profiles) }); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func write(out io.Writer, line func() ([]byte, error)) error {
	content, err := line()
	if err == nil {
		_, err = out.Write(append(content, '\n'))
	}
	return err
}
