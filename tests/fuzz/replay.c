// SPDX-License-Identifier: BSD-2-Clause
/*
 * The main of a fuzz target in an ordinary build: feeds the target the empty input and every file
 * of the folders and files that are named on the command line. A crash or a failed assertion is
 * the test's failure.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t capacity = 1u << 20;
	uint8_t *exact = NULL;
	uint8_t *data;
	size_t size;

	data = malloc(capacity);
	if (!file || !data) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	size = fread(data, 1, capacity, file);
	fclose(file);
	/* a block of the exact size, so that the address sanitizer sees a read past the end */
	exact = malloc(size ? size : 1);
	if (!exact)
		exit(2);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	free(data);
	return 1;
}

static int replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[4096];
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		count += replay_file(path);
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int count = 1;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) != 0)
			continue;
		count += S_ISDIR(st.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
	}
	printf("%d inputs\n", count);
	return 0;
}
