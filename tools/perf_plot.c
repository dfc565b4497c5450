// SPDX-License-Identifier: BSD-2-Clause
/*
 * Draws the results of dat_perf as an SVG picture: one panel for latency (median, and the 99th
 * percentile dashed) and one for bandwidth, both over the size, with logarithmic axes.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "perf_output.h"

#define PLOT_WIDTH 860
#define PLOT_PANEL 380 /* height of a panel with its title and labels */
#define PLOT_LEFT 90
#define PLOT_TOP 40
#define PLOT_HEAD 64 /* height of the lines that say what was measured */
#define PLOT_INNER_WIDTH 560
#define PLOT_INNER_HEIGHT 280
#define PLOT_LINES 2u /* of a latency test */

struct plot_point {
	enum perf_test test;
	unsigned series;
	uint64_t size;
	uint64_t samples;
	double values[PLOT_LINES]; /* us, or the bandwidth and nothing */
};

/* One panel: the range of its axes. */
struct plot_panel {
	enum perf_kind kind;
	int top;
	double size_min, size_max; /* logarithms to base 2 */
	double min, max;	   /* logarithms to base 10 */
};

static FILE *plot_file;
static const char *plot_path;
static struct plot_point *plot_points;
static size_t plot_count;
static const struct perf_unit *plot_unit;
static char plot_where[2][512]; /* adapter and how it was used; host and time */
static unsigned plot_runs;

static const char *const plot_colors[] = {"#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2",
					  "#c77d0a", "#4a4a4a", "#17a2b8", "#7a5230"};

int perf_plot_open(const char *path)
{
	plot_path = path;
	plot_file = fopen(path, "w");
	if (plot_file)
		return 0;
	tool_complain("--plot %s: %s", path, strerror(errno));
	return -EIO;
}

void perf_plot_begin(const struct perf_options *options, struct perf_peer *peer)
{
	const struct perf_plan *plan = &options->plan;
	char time[TOOL_TIME_TEXT], host[256] = "unknown";

	plot_unit = options->unit;
	if (plot_runs++ > 0)
		return; /* of a batch: the head says so */
	gethostname(host, sizeof(host) - 1);
	snprintf(plot_where[0], sizeof(plot_where[0]),
		 "adapter %s, path %s, %s, %s buffers, %u endpoint%s, %u thread%s, window %u",
		 options->side.adapter, session_path_text(&peer->session, peer->control),
		 plan->is_waiting ? "waiting" : "polling", perf_buffer_text(plan), plan->endpoints,
		 plan->endpoints == 1 ? "" : "s", plan->threads, plan->threads == 1 ? "" : "s",
		 plan->window);
	snprintf(plot_where[1], sizeof(plot_where[1]), "host %s, %s, dat_perf %s", host,
		 tool_time_text(time), OPENDAT_VERSION);
}

void perf_plot_add(const struct perf_result *result)
{
	enum perf_kind kind = perf_tests[result->test].kind;
	struct plot_point *last = plot_count ? &plot_points[plot_count - 1] : NULL;
	struct plot_point point = {
		.test = result->test, .size = result->size, .samples = result->count};
	struct perf_times times;

	if (kind != PERF_LATENCY && kind != PERF_BANDWIDTH)
		return;
	/* the next run of a batch starts a line of its own */
	if (last)
		point.series =
			last->series + (last->test != result->test || last->size >= result->size);
	if (kind == PERF_LATENCY) {
		perf_times_of(result, &times);
		point.values[0] = times.percentiles[0];
		point.values[1] = times.percentiles[2];
	} else {
		point.values[0] = perf_result_bandwidth(result, plot_unit);
	}
	last = reallocarray(plot_points, plot_count + 1, sizeof(*last));
	if (!last)
		return;
	plot_points = last;
	plot_points[plot_count++] = point;
}

/* The range of the axes. False: no result belongs into the panel. */
static bool plot_range(struct plot_panel *panel)
{
	bool has_point = false;

	panel->size_min = panel->min = INFINITY;
	panel->size_max = panel->max = -INFINITY;
	for (size_t i = 0; i < plot_count; i++) {
		const struct plot_point *point = &plot_points[i];

		if (perf_tests[point->test].kind != panel->kind)
			continue;
		has_point = true;
		panel->size_min = fmin(panel->size_min, log2((double)point->size));
		panel->size_max = fmax(panel->size_max, log2((double)point->size));
		for (unsigned j = 0; j < PLOT_LINES && point->values[j] > 0; j++) {
			panel->min = fmin(panel->min, floor(log10(point->values[j])));
			panel->max = fmax(panel->max, ceil(log10(point->values[j])));
		}
	}
	if (panel->size_max <= panel->size_min)
		panel->size_max = panel->size_min + 1;
	if (!(panel->max > panel->min)) {
		panel->min = isfinite(panel->min) ? panel->min : 0;
		panel->max = panel->min + 1;
	}
	return has_point;
}

static double plot_x(const struct plot_panel *panel, double size_log)
{
	return PLOT_LEFT + PLOT_INNER_WIDTH * (size_log - panel->size_min) /
				   (panel->size_max - panel->size_min);
}

static double plot_y(const struct plot_panel *panel, double value_log)
{
	return panel->top + PLOT_TOP +
	       PLOT_INNER_HEIGHT * (panel->max - value_log) / (panel->max - panel->min);
}

/* Names of adapters and hosts may have any character. */
static void plot_escaped(const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&", *text))
			fprintf(plot_file, "&#%d;", *text);
		else
			fputc(*text, plot_file);
	}
}

static void plot_text(double x, double y, const char *anchor, const char *text)
{
	fprintf(plot_file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	plot_escaped(text);
	fprintf(plot_file, "</text>\n");
}

static void plot_line(double x1, double y1, double x2, double y2, const char *color)
{
	fprintf(plot_file,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
		x2, y2, color);
}

static void plot_size_text(double size_log, char *text, size_t size)
{
	static const char *const units[] = {"", "k", "m"};
	unsigned unit = size_log >= 20 ? 2 : size_log >= 10 ? 1 : 0;

	snprintf(text, size, "%.4g%s", exp2(size_log - 10.0 * unit), units[unit]);
}

/* A power of ten of microseconds: "100 ns", "10 us", "1 s". */
static void plot_time_text(double us_log, char *text, size_t size)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	int unit = (int)floor(us_log / 3) + 1;

	unit = unit < 0 ? 0 : unit > 3 ? 3 : unit;
	snprintf(text, size, "%.10g %s", pow(10, us_log - 3.0 * (unit - 1)), units[unit]);
}

static void plot_axes(const struct plot_panel *panel)
{
	double bottom = plot_y(panel, panel->min);
	double step = ceil((panel->size_max - panel->size_min) / 12);
	char text[64];

	snprintf(text, sizeof(text), "bandwidth in %s/s", plot_unit->name);
	plot_text(PLOT_LEFT, panel->top + PLOT_TOP - 14, "start",
		  panel->kind == PERF_LATENCY ? "latency: median, and 99th percentile dashed"
					      : text);
	for (double value = panel->min; value <= panel->max; value++) {
		double y = plot_y(panel, value);

		plot_line(PLOT_LEFT, y, PLOT_LEFT + PLOT_INNER_WIDTH, y, "#dddddd");
		if (panel->kind == PERF_LATENCY)
			plot_time_text(value, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "%.10g", pow(10, value));
		plot_text(PLOT_LEFT - 8, y + 4, "end", text);
	}
	for (double size = ceil(panel->size_min); size <= panel->size_max; size += step) {
		double x = plot_x(panel, size);

		plot_line(x, plot_y(panel, panel->max), x, bottom, "#dddddd");
		plot_size_text(size, text, sizeof(text));
		plot_text(x, bottom + 18, "middle", text);
	}
	plot_text(PLOT_LEFT + PLOT_INNER_WIDTH / 2.0, bottom + 38, "middle", "bytes");
}

/* One line of a series, which begins at `first`. Returns the index after the series. */
static size_t plot_series(const struct plot_panel *panel, size_t first, unsigned line,
			  const char *color)
{
	size_t end = first;

	for (; end < plot_count && plot_points[end].series == plot_points[first].series; end++)
		continue;
	if (plot_points[first].values[line] <= 0)
		return end;
	fprintf(plot_file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"",
		color, line == 0 ? "" : " stroke-dasharray=\"4 4\"");
	for (size_t i = first; i < end; i++)
		fprintf(plot_file, "%s%.1f,%.1f", i == first ? "" : " ",
			plot_x(panel, log2((double)plot_points[i].size)),
			plot_y(panel, log10(plot_points[i].values[line])));
	fprintf(plot_file, "\"/>\n");
	for (size_t i = first; line == 0 && i < end; i++)
		fprintf(plot_file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
			plot_x(panel, log2((double)plot_points[i].size)),
			plot_y(panel, log10(plot_points[i].values[line])), color);
	return end;
}

static void plot_panel(const struct plot_panel *panel)
{
	double y = panel->top + PLOT_TOP + 10;
	unsigned count = 0;
	size_t end;

	plot_axes(panel);
	for (size_t first = 0; first < plot_count; first = end) {
		const char *color =
			plot_colors[count % (sizeof(plot_colors) / sizeof(plot_colors[0]))];

		end = first + 1;
		if (perf_tests[plot_points[first].test].kind != panel->kind)
			continue;
		for (unsigned line = 0; line < PLOT_LINES; line++)
			end = plot_series(panel, first, line, color);
		plot_line(PLOT_LEFT + PLOT_INNER_WIDTH + 16, y - 4,
			  PLOT_LEFT + PLOT_INNER_WIDTH + 40, y - 4, color);
		plot_text(PLOT_LEFT + PLOT_INNER_WIDTH + 48, y, "start",
			  perf_tests[plot_points[first].test].name);
		y += 20;
		count++;
	}
}

/* The tests of the picture, each once: "send-lat, write-bw". */
static void plot_tests(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int test = 0; test < PERF_TESTS && len < size; test++) {
		for (size_t i = 0; i < plot_count; i++) {
			if (plot_points[i].test != (enum perf_test)test)
				continue;
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						perf_tests[test].name);
			break;
		}
	}
}

/* What the picture shows, above the panels, and for programs that read pictures aloud. */
static void plot_head(void)
{
	uint64_t least = UINT64_MAX, most = 0;
	char tests[256], line[640];

	for (size_t i = 0; i < plot_count; i++) {
		least = plot_points[i].samples < least ? plot_points[i].samples : least;
		most = plot_points[i].samples > most ? plot_points[i].samples : most;
	}
	plot_tests(tests, sizeof(tests));
	fprintf(plot_file, "<title>dat_perf: ");
	plot_escaped(tests);
	fprintf(plot_file, "</title>\n<desc>");
	plot_escaped(plot_where[0]);
	fprintf(plot_file, "; ");
	plot_escaped(plot_where[1]);
	fprintf(plot_file, "</desc>\n");
	plot_text(PLOT_LEFT, 20, "start", tests);
	plot_text(PLOT_LEFT, 38, "start", plot_where[0]);
	snprintf(line, sizeof(line), "%s, %" PRIu64 " to %" PRIu64 " samples for each point%s",
		 plot_where[1], least, most, plot_runs > 1 ? ", first of several runs" : "");
	plot_text(PLOT_LEFT, 56, "start", line);
}

int perf_plot_close(void)
{
	struct plot_panel panels[] = {{.kind = PERF_LATENCY}, {.kind = PERF_BANDWIDTH}};
	bool is_used[2];
	int height = PLOT_HEAD;
	int rc = 0;

	for (unsigned i = 0; i < 2; i++) {
		is_used[i] = plot_range(&panels[i]);
		panels[i].top = height;
		height += is_used[i] ? PLOT_PANEL : 0;
	}
	fprintf(plot_file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		PLOT_WIDTH, height, PLOT_WIDTH, height);
	if (height > PLOT_HEAD)
		plot_head();
	for (unsigned i = 0; i < 2; i++)
		if (is_used[i])
			plot_panel(&panels[i]);
	fprintf(plot_file, "</svg>\n");
	if (ferror(plot_file))
		rc = -EIO;
	if (fclose(plot_file) != 0)
		rc = -EIO;
	if (rc != 0)
		tool_complain("--plot %s: cannot write", plot_path);
	if (height == PLOT_HEAD) {
		tool_complain("--plot %s: no test of latency or bandwidth has a result", plot_path);
		rc = -ENODATA;
	}
	free(plot_points);
	plot_points = NULL;
	plot_count = 0;
	return rc;
}
