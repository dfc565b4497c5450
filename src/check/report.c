// SPDX-License-Identifier: BSD-2-Clause
/* What the environment asks for, the places of calls, and the text of a report. */
#include "check/report.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAVE_BACKTRACE 1
#endif

#include "shared/check.h"
#include "shared/log_line.h"
#include "shared/names.h"
#include "shared/opendat.h"

#define TEXT_MAX 4096u
#define PLACES_MAX 1024u /* reports of different places; later ones are only counted */
#define SUPPRESSIONS_MAX 256u

enum level { FAULT, ADVICE };

struct rule {
	const char *name, *row, *page, *text;
	enum level level;
};

#define RULE_ENTRY(identifier, name, level, row, page, text)                                       \
	[CHECK_##identifier] = {name, row, page, text, level},
static const struct rule rules[CHECK_RULE_COUNT] = {CHECK_RULES(RULE_ENTRY)};

struct suppression {
	char rule[32];
	char text[128];
};

/* Set once, by read_environment. */
static struct {
	bool is_off[CHECK_RULE_COUNT];
	bool is_abort;
	pid_t process; /* its children do not write the counts */
	struct opendat_log log;
	struct suppression suppressions[SUPPRESSIONS_MAX];
	unsigned suppression_count;
} settings;

/* Guarded by the lock. */
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counts[CHECK_RULE_COUNT];
static uintptr_t places[PLACES_MAX];
static unsigned place_count;

static __thread int thread_number;

uint64_t check_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int check_thread(void)
{
	if (!thread_number)
		thread_number = (int)syscall(SYS_gettid);
	return thread_number;
}

unsigned check_number(const struct check_object *object)
{
	uintptr_t offset = (uintptr_t)object - opendat_handle_arena.base;

	return (unsigned)(offset >> OPENDAT_CELL_SHIFT) + 1;
}

struct check_name check_name(const struct check_object *object)
{
	struct check_name name;

	snprintf(name.text, sizeof(name.text), "%s %u",
		 opendat_object_name((DAT_HANDLE_TYPE)object->type), check_number(object));
	return name;
}

/* ---- places ---- */

/* Where this library and libdat begin; set once. */
static const void *bases[2];

static void find_bases(void)
{
	Dl_info info;

	if (dladdr((const void *)(uintptr_t)dat_strerror, &info))
		bases[0] = info.dli_fbase;
	if (dladdr(bases, &info))
		bases[1] = info.dli_fbase;
}

/* Is the code in this library or in libdat? The program's frames are behind those. */
static bool is_ours(const void *frame)
{
	Dl_info info;

	return dladdr(frame, &info) && (info.dli_fbase == bases[0] || info.dli_fbase == bases[1]);
}

void check_place_get(struct check_place *place_out)
{
#ifdef HAVE_BACKTRACE
	void *frames[CHECK_FRAMES + 6];
	int count = backtrace(frames, CHECK_FRAMES + 6), first = 0;

	/* a sanitizer walks the stack by itself, so its frames come before ours */
	while (first < count && !is_ours(frames[first]))
		first++;
	while (first < count && is_ours(frames[first]))
		first++;
	place_out->count = 0;
	while (first < count && place_out->count < (int)CHECK_FRAMES)
		place_out->frames[place_out->count++] = frames[first++];
#else
	place_out->count = 0;
#endif
	place_out->thread = check_thread();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
const void *check_program_frame(void)
{
	struct check_place place;
	int state;

	/* the thread may be cancelled anywhere, and the loader has a lock */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	check_place_get(&place);
	pthread_setcancelstate(state, NULL);
	return place.count ? place.frames[0] : NULL;
}
#endif

static void frame_text(const void *frame, char *text, size_t size)
{
	const char *file;
	Dl_info info;

	if (!dladdr(frame, &info) || !info.dli_fname) {
		snprintf(text, size, "%p", frame);
		return;
	}
	file = strrchr(info.dli_fname, '/');
	file = file ? file + 1 : info.dli_fname;
	if (info.dli_sname)
		snprintf(text, size, "%s(%s+0x%zx)", file, info.dli_sname,
			 (size_t)((const char *)frame - (const char *)info.dli_saddr));
	else
		snprintf(text, size, "%s(+0x%zx)", file,
			 (size_t)((const char *)frame - (const char *)info.dli_fbase));
}

/* ---- the environment ---- */

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list && *list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, word, len) == 0 && (list[len] == ',' || list[len] == '\0'))
			return true;
	return false;
}

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	opendat_log_line(&settings.log, "libdat-check", OPENDAT_LOG_WARNING, text);
}

static int rule_find(const char *name, size_t len)
{
	for (int i = 0; i < CHECK_RULE_COUNT; i++)
		if (strlen(rules[i].name) == len && memcmp(rules[i].name, name, len) == 0)
			return i;
	return -1;
}

static void read_off(const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");
		int rule = rule_find(list, len);

		if (rule >= 0)
			settings.is_off[rule] = true;
		else if (len)
			complain("DAT_CHECK_OFF: no rule has the name %.*s; see dat_info --checks",
				 (int)len, list);
		list += len + (list[len] == ',');
	}
}

static void read_suppressions(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256], rule[32], text[128];
	unsigned number = 0;

	if (!file) {
		complain("DAT_CHECK_FILE: %s: %m", path);
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		number++;
		if (sscanf(line, " %31s %127s", rule, text) < 1 || rule[0] == '#')
			continue;
		if (sscanf(line, " %31s %127s", rule, text) < 2 ||
		    (strcmp(rule, "*") != 0 && rule_find(rule, strlen(rule)) < 0)) {
			complain("%s:%u: not the name of a rule and a piece of a frame", path,
				 number);
			continue;
		}
		if (settings.suppression_count == SUPPRESSIONS_MAX) {
			complain("%s:%u: more than %u lines", path, number, SUPPRESSIONS_MAX);
			break;
		}
		strcpy(settings.suppressions[settings.suppression_count].rule, rule);
		strcpy(settings.suppressions[settings.suppression_count++].text, text);
	}
	fclose(file);
}

static bool is_set(const char *value)
{
	return value && *value && strcmp(value, "0") != 0;
}

static void read_environment(void)
{
	const char *words = secure_getenv("DAT_CHECK"), *path = secure_getenv("DAT_CHECK_FILE");
	const char *trace = secure_getenv("DAT_TRACE");
	bool is_all = has_word(words, "all"), is_silent = !is_set(words) && is_set(trace);

	find_bases();
	opendat_log_read(&settings.log);
	settings.process = getpid();
	settings.is_abort = has_word(words, "abort");
	for (int i = 0; i < CHECK_RULE_COUNT; i++)
		settings.is_off[i] = is_silent || (rules[i].level == ADVICE && !is_all);
	read_off(secure_getenv("DAT_CHECK_OFF"));
	if (path)
		read_suppressions(path);
}

void check_report_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
}

bool check_rule_is_on(enum check_rule rule)
{
	return !settings.is_off[rule];
}

bool check_is_news(enum check_rule rule, const struct check_object *object)
{
	bool is_known;

	if (!check_rule_is_on(rule))
		return false;
	if (!object)
		return true;
	pthread_mutex_lock(&report_lock);
	is_known = object->life->reported & 1u << rule;
	counts[rule] += is_known;
	pthread_mutex_unlock(&report_lock);
	return !is_known;
}

/* ---- reports ---- */

struct text {
	char bytes[TEXT_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->bytes + text->len, TEXT_MAX - text->len, format, args);
	va_end(args);
	if (len > 0)
		text->len =
			text->len + (size_t)len < TEXT_MAX ? text->len + (size_t)len : TEXT_MAX - 1;
}

static void add_place(struct text *text, const struct check_place *place)
{
	char frame[160];

	for (int i = 0; i < place->count; i++) {
		frame_text(place->frames[i], frame, sizeof(frame));
		add(text, "\n    at %s", frame);
	}
}

/* What other threads may change while it is printed: they add steps, or free the object. */
struct history {
	struct check_step steps[CHECK_STEPS];
	unsigned step_count;
	const char *ender; /* NULL: it was not freed */
	struct check_place ended;
};

static void copy_history(struct history *history_out, const struct check_life *life)
{
	check_lock();
	memcpy(history_out->steps, life->steps, sizeof(life->steps));
	history_out->step_count = life->step_count;
	history_out->ender = life->ender;
	history_out->ended = life->ended;
	check_unlock();
}

static void add_steps(struct text *text, const struct history *history)
{
	unsigned count = history->step_count;
	const char *major, *minor;

	if (count)
		add(text, "\n  then:");
	for (unsigned i = count > CHECK_STEPS ? count - CHECK_STEPS : 0, n = 0; i < count; i++) {
		const struct check_step *step = &history->steps[i % CHECK_STEPS];

		add(text, "%s %s", n++ ? "," : "", step->what);
		if (step->result != DAT_SUCCESS &&
		    dat_strerror(step->result, &major, &minor) == DAT_SUCCESS)
			add(text, " (%s)", major);
	}
}

static void add_life(struct text *text, const struct check_object *object)
{
	const struct check_life *life = object->life;
	struct history history;

	copy_history(&history, life);
	add(text, "\n  %s was made by %s, thread %d", check_name(object).text, life->maker,
	    life->made.thread);
	add_place(text, &life->made);
	add_steps(text, &history);
	if (history.ender) {
		add(text, "\n  %s was freed by %s, thread %d", check_name(object).text,
		    history.ender, history.ended.thread);
		add_place(text, &history.ended);
	}
}

static bool is_suppressed(enum check_rule rule, const struct check_place *place)
{
	char frame[160];

	for (unsigned i = 0; i < settings.suppression_count; i++) {
		const struct suppression *one = &settings.suppressions[i];

		if (strcmp(one->rule, "*") != 0 && strcmp(one->rule, rules[rule].name) != 0)
			continue;
		for (int f = 0; f < place->count; f++) {
			frame_text(place->frames[f], frame, sizeof(frame));
			if (strstr(frame, one->text))
				return true;
		}
	}
	return false;
}

/* Counts the fault. Is it the first of its object, and of its place with an object made there? */
static bool count_fault(const struct check_call *call, enum check_rule rule,
			struct check_object *object, const struct check_place *place)
{
	uintptr_t sum = (uintptr_t)rule + 1;
	bool is_new = true;

	/* the call itself, and who called the function that made it; a completion is taken at one
	 * place for requests of many */
	sum = sum * 31 + (uintptr_t)call->posted_at;
	for (int i = 0; i < place->count && i < 3 && !call->posted_at; i++)
		sum = sum * 31 + (uintptr_t)place->frames[i];
	for (int i = 0; object && i < object->life->made.count && i < 2; i++)
		sum = sum * 31 + (uintptr_t)object->life->made.frames[i];
	pthread_mutex_lock(&report_lock);
	counts[rule]++;
	if (object && (object->life->reported & 1u << rule))
		is_new = false;
	if (object)
		object->life->reported |= 1u << rule;
	for (unsigned i = 0; i < place_count && is_new && place->count; i++)
		is_new = places[i] != sum;
	if (is_new && place_count < PLACES_MAX)
		places[place_count++] = sum;
	else
		is_new = false;
	pthread_mutex_unlock(&report_lock);
	return is_new;
}

/* Each line of the report is one of the log; the first one has the severity. */
static void write_report(enum check_rule rule, const char *text)
{
	unsigned kinds = OPENDAT_LOG_ERROR |
			 (rules[rule].level == ADVICE ? (unsigned)OPENDAT_LOG_WARNING : 0);
	char line[512];

	pthread_mutex_lock(&report_lock);
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		opendat_log_line(&settings.log, "libdat-check", kinds, line);
		kinds = 0;
	}
	pthread_mutex_unlock(&report_lock);
}

static void deliver(const struct check_call *call, enum check_rule rule,
		    struct check_object *object, const struct text *text)
{
	DAT_OPENDAT_CHECK_REPORT report = {
		.rule = rules[rule].name,
		.requirement = rules[rule].row,
		.call = call->name,
		.handle = (DAT_HANDLE)object,
		.text = text->bytes,
	};

	if (!opendat_check_deliver(&report))
		write_report(rule, text->bytes);
	if (settings.is_abort)
		abort();
}

void check_report(const struct check_call *call, enum check_rule rule, struct check_object *object,
		  const char *format, ...)
{
	struct check_place place;
	struct text text = {.len = 0};
	va_list args;
	int len;

	/* a program may break a rule a million times: a fault that was reported before must not cost
	 * a stack walk */
	if (!check_is_news(rule, object))
		return;
	check_place_get(&place);
	if (is_suppressed(rule, &place) || !count_fault(call, rule, object, &place))
		return;
	add(&text, "%s: ", rules[rule].name);
	va_start(args, format);
	len = vsnprintf(text.bytes + text.len, TEXT_MAX - text.len, format, args);
	va_end(args);
	text.len += len > 0 && text.len + (size_t)len < TEXT_MAX ? (size_t)len : 0;
	add(&text, "\n  in %s, thread %d", call->name, check_thread());
	add_place(&text, &place);
	if (call->posted_at) {
		char frame[160];

		frame_text(call->posted_at, frame, sizeof(frame));
		add(&text, "\n  posted at %s", frame);
	}
	if (object)
		add_life(&text, object);
	add(&text, "\n  the rule: %s (%s, %s(3))", rules[rule].text, rules[rule].row,
	    rules[rule].page);
	deliver(call, rule, object, &text);
}

__attribute__((destructor)) static void write_counts(void)
{
	char text[128];

	if (getpid() != settings.process)
		return;
	for (int i = 0; i < CHECK_RULE_COUNT; i++)
		if (counts[i] > 1) {
			snprintf(text, sizeof(text), "%s: %lu times in all", rules[i].name,
				 counts[i]);
			opendat_log_line(&settings.log, "libdat-check", 0, text);
		}
}
