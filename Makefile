# The PostgreSQL front door: builds, installs and tests the extension (see `make help`).
# The folders are the list of sources, here and in CMakeLists.txt. What takes more than a command or two
# to do is a script in test/.

PG_CONFIG ?= pg_config
# Goals that need no PostgreSQL. PGXS is read only when none of them is asked for: it has a `check` of its own.
OURS = check unit sanitize demo bench format format-check deps help

.DEFAULT_GOAL = all

ifneq ($(filter $(OURS),$(MAKECMDGOALS)),)

.PHONY: $(MAKECMDGOALS)
$(filter-out $(OURS),$(MAKECMDGOALS)): ; @$(MAKE) --no-print-directory $@

CMAKE_UNIT = cmake -S . -DCMAKE_BUILD_TYPE=Debug
FORMATTED = $(wildcard $(foreach suffix,cpp h cu cuh,src/*/*.$(suffix) cuda/*.$(suffix) test/*/*.$(suffix)))

check: ; @test/check
demo: ; @test/demo
bench: ; @test/deps bench || echo 'going on without'; test/bench/run
deps: ; @test/deps check bench

unit:
	@$(CMAKE_UNIT) -B build/unit >/dev/null && cmake --build build/unit -j $(shell nproc) --target gpujoin_unit
	build/unit/gpujoin_unit

sanitize:
	@$(CMAKE_UNIT) -B build/sanitize -DGPUJOIN_SANITIZE=ON >/dev/null && \
	  cmake --build build/sanitize -j $(shell nproc) --target gpujoin_unit
	build/sanitize/gpujoin_unit

format: ; clang-format -i $(FORMATTED)

format-check:
	@for f in $(FORMATTED); do \
	  if clang-format --dry-run -Werror $$f; then echo "ok $$f"; else echo "not ok $$f"; fi; done

help:
	@echo 'make              build gpujoin.so, and gpujoin_cuda.so where there is nvcc'
	@echo 'make install      install into the PostgreSQL of PG_CONFIG=$(PG_CONFIG)'
	@echo 'make demo         build, start a private cluster, join a table, compare (DATA=points.csv EPS=1)'
	@echo 'make check        every test, in a private cluster; the last line counts them'
	@echo 'make installcheck the regression tests, in a running cluster that has gpujoin installed'
	@echo 'make unit         unit tests of the engines (no PostgreSQL needed); make sanitize: under ASan, UBSan'
	@echo 'make bench        compare with PostgreSQL, PostGIS, nanoflann and Boost; writes docs/benchmarks.md'
	@echo 'make format       clang-format all sources'
	@echo 'make deps         install what building, testing and measuring need (Debian, Ubuntu)'
	@echo 'make clean        remove what was built'

else

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(wildcard $(PGXS)),)
  $(error $(PG_CONFIG) or the PostgreSQL server headers are missing: `make deps` installs what is needed)
endif

EXTENSION = gpujoin
MODULE_big = gpujoin
# The DATA of `make demo` is the user's file; PGXS's is always this.
override DATA = $(wildcard sql/gpujoin--*.sql)
REGRESS = $(patsubst sql/%.sql,%,$(filter-out $(DATA),$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=gpujoin

ENGINE_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/engine/*.cpp src/cpu/*.cpp))
PG_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/pg/*.cpp))
OBJS = $(ENGINE_OBJS) $(PG_OBJS)
EXTRA_CLEAN = build $(OBJS:.o=.d) gpujoin_cuda.so
SHLIB_LINK = -lhwy -lstdc++ -lpthread -ldl
# No bitcode: none of the functions is worth inlining into an expression.
override with_llvm = no

include $(PGXS)

ifeq ($(filter clean uninstall,$(MAKECMDGOALS)),)
  ifeq ($(shell command -v $(CXX) 2>/dev/null),)
    $(error the C++ compiler $(CXX) is missing: `make deps` installs what is needed)
  endif
  ifeq ($(shell $(CXX) -xc++ -E -include hwy/detect_targets.h /dev/null >/dev/null 2>&1 && echo yes),)
    $(error the library Highway (libhwy-dev) is missing: `make deps` installs what is needed)
  endif
endif

# Exactness: no fused multiply-add, never -ffast-math, never -march=native.
# Only src/pg sees PostgreSQL's headers, and only it exports symbols.
OUR_CXXFLAGS = -std=c++20 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -Isrc -MMD -MP
$(ENGINE_OBJS): ROOM_FLAGS = -O3 -DNDEBUG -fvisibility=hidden $(filter-out -I%,$(CPPFLAGS))
$(PG_OBJS): ROOM_FLAGS = -fvisibility-inlines-hidden $(patsubst -I/%,-isystem/%,$(CPPFLAGS))

$(OBJS): %.o: %.cpp Makefile
	$(CXX) $(CXXFLAGS) $(OUR_CXXFLAGS) $(ROOM_FLAGS) -c -o $@ $<

-include $(OBJS:.o=.d)

# The CUDA engine, an object of its own that gpujoin.so opens at run time.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCH ?= all-major
CUDA_SOURCES = $(wildcard cuda/*.cu)

ifeq ($(NVCC),)
all: ; @echo 'nvcc not found: building without gpujoin_cuda.so (the CPU engine serves every join)'
else ifeq ($(CUDA_SOURCES),)
all: ; @echo 'CUDA engine: not part of this version'
else
all: gpujoin_cuda.so
gpujoin_cuda.so: $(CUDA_SOURCES) $(wildcard cuda/*.cuh cuda/*.h src/core/*.h src/engine/*.h) build/cuda-arch Makefile
	$(NVCC) -std=c++20 -O3 --fmad=false -arch=$(CUDA_ARCH) -Isrc -I. -Werror all-warnings --shared \
	  -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-Wall,-Wextra,-Werror -o $@ $(CUDA_SOURCES)
build/cuda-arch: FORCE
	@mkdir -p build; echo '$(CUDA_ARCH)' | cmp -s - $@ || echo '$(CUDA_ARCH)' >$@

install: install-cuda
install-cuda: gpujoin_cuda.so installdirs
	$(INSTALL_SHLIB) $< '$(DESTDIR)$(pkglibdir)/'
uninstall: uninstall-cuda
uninstall-cuda: ; rm -f '$(DESTDIR)$(pkglibdir)/gpujoin_cuda.so'
.PHONY: FORCE install-cuda uninstall-cuda
endif

endif
