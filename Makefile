# The PostgreSQL front door: builds, installs and tests the extension (see `make help`).
# The folders are the list of sources, here and in CMakeLists.txt. What takes more than a command or two
# to do is a script in test/.

PG_CONFIG ?= pg_config
# Goals that need no PostgreSQL. PGXS is read only when none of them is asked for: it has a `check` of its own.
OURS = check check-sql check-all check-debian fuzz unit unit-build sanitize tsan demo bench bench-spatial pictures format format-check deps sbom dist help

.DEFAULT_GOAL = all

ifneq ($(filter $(OURS),$(MAKECMDGOALS)),)

.PHONY: $(MAKECMDGOALS)
$(filter-out $(OURS),$(MAKECMDGOALS)): ; @$(MAKE) --no-print-directory $@

CMAKE_UNIT = cmake -S . -DCMAKE_BUILD_TYPE=Debug -DGPUJOIN_WERROR=$(if $(WERROR),ON,OFF) -DGPUJOIN_BUILT=$(if $(BUILT),ON,OFF)
FORMATTED = $(wildcard $(foreach suffix,cpp h cu cuh,src/*/*.$(suffix) src/*/*/*.$(suffix) cuda/*.$(suffix) cuda/*/*.$(suffix) test/*/*.$(suffix)))

check: ; @test/check
check-sql: ; @test/check sql
check-all: ; @test/check all
check-debian: ; @test/debian
demo: ; @test/demo
fuzz: ; @test/fuzz/run --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
  $(if $(ENGINE),--engine $(ENGINE)) $(if $(MODE),--mode $(MODE)) $(FUZZ)
bench: ; @test/deps bench || echo 'going on without'; test/bench/run
bench-spatial: ; @$(or $(PYTHON),python3) test/bench/spatialbench.py $(SPATIALBENCH)
pictures: ; @test/deps pictures && test/bench/pictures
deps: ; @test/deps sql check bench
sbom: ; @$(MAKE) -s all && mkdir -p build/sbom && for f in gpujoin*.so gpujoin_service; do \
	  test/packages sbom $$f >build/sbom/$$f.spdx.json && echo build/sbom/$$f.spdx.json; done

# The archive that PGXN takes: what is committed, but for what dotfiles there are.
dist:
	@mkdir -p build && version=$$(sed -n 's/^  "version": "\(.*\)",$$/\1/p' META.json) && \
	  git -c safe.directory='*' archive --format=zip --prefix="gpujoin-$$version/" -o "build/gpujoin-$$version.zip" HEAD \
	    $$(git -c safe.directory='*' ls-tree --name-only HEAD | grep -v '^\.') && echo "build/gpujoin-$$version.zip"

# BUILT=1 links the objects that make has built. They have no assertions; make sanitize compiles those.
unit: unit-build
	test/unit/run build/unit
unit-build:
	@$(CMAKE_UNIT) -B build/unit >/dev/null && cmake --build build/unit -j $(shell nproc) --target gpujoin_unit

sanitize:
	@$(CMAKE_UNIT) -B build/sanitize -DGPUJOIN_SANITIZE=ON >/dev/null && \
	  cmake --build build/sanitize -j $(shell nproc) --target gpujoin_unit
	test/unit/run build/sanitize

# What threads share: tests of joins, sorts, interrupts and early ends with several workers, and of the service; twenty
# times slower.
THREADED = *Service*:*ParallelSort*:*EngineContract*:*EngineInterrupts*:*JoinBatches*:*several_workers*:*several_threads*:$\
  *come_together*:*SideSlots*:*PartAhead*:*_at_any_time*
tsan:
	@$(CMAKE_UNIT) -B build/tsan -DGPUJOIN_SANITIZE=thread -DGPUJOIN_UNIT_TESTS='$(THREADED)' >/dev/null && \
	  cmake --build build/tsan -j $(shell nproc) --target gpujoin_unit
	test/unit/run build/tsan '$(THREADED)'

format: ; clang-format -i $(FORMATTED)

format-check:
	@printf '%s\n' $(FORMATTED) | xargs -P $(shell nproc) -I '{}' sh -c \
	  'if said=$$(clang-format --dry-run -Werror {} 2>&1); then echo "ok {}"; else echo "$$said"; echo "not ok {}"; fi'

help:
	@echo 'make              build gpujoin.so, gpujoin_cpu.so and gpujoin_service, and gpujoin_cuda.so where there is nvcc'
	@echo '                  (for CUDA_ARCH, the architectures of the cards here, or else "80 86 89 90 100 120"; NVCC=... names the compiler)'
	@echo 'make install      install into the PostgreSQL of PG_CONFIG=$(PG_CONFIG)'
	@echo 'make demo         build what this machine can run, start a private cluster, join a table, compare'
	@echo '                  (DATA=points.csv, and where its columns are not recognised COLUMNS=lon,lat ID=id; EPS=1)'
	@echo 'make check        each test once, in a private cluster; the last line counts them'
	@echo 'make check-sql    of these, the ones that need PostgreSQL'
	@echo 'make check-all    make check, then sanitizers, half an hour of fuzz, and make check-debian: some two hours'
	@echo 'make check-debian make demo and make check-sql as a newcomer to Debian would, in chroots, and the packages (as root)'
	@echo 'make fuzz         random joins, with the node and without it (SECONDS=60 SEED=N ROUNDS=N ENGINE=cpu|cuda MODE=joins|speed)'
	@echo 'make installcheck the regression tests, in a running cluster that has gpujoin installed'
	@echo 'make unit         unit tests of the engines (no PostgreSQL needed); make sanitize: under ASan, UBSan;'
	@echo '                  make tsan: under ThreadSanitizer'
	@echo 'make bench        compare with PostgreSQL, PostGIS, q3c, nanoflann, Boost, scipy and scikit-learn; writes docs/benchmarks.md'
	@echo '                  (test/bench/run PART alone renews what the part measures; test/bench/run --help)'
	@echo 'make bench-spatial  the queries of SpatialBench, in turns with PostGIS, DuckDB and SedonaDB; writes docs/benchmarks.md'
	@echo '                  (PYTHON=... that has them; SPATIALBENCH="folder --rounds N --limit SECONDS")'
	@echo 'make pictures     draw docs/pictures from the figures that make bench and test/bench/maps.sql wrote there'
	@echo 'make format       clang-format all sources'
	@echo 'make deps         install what building, testing and measuring need (Debian, Ubuntu)'
	@echo 'make sbom         what is built, and the Debian packages that it is linked with, as SPDX in build/sbom'
	@echo 'make dist         the archive for PGXN, of what is committed, in build'
	@echo 'make volume       the files of an image for servers that load extensions from one, with Highway, in VOLUME=build/volume'
	@echo 'make clean        remove what was built'

else

PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(and $(wildcard $(PGXS)),$(wildcard $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)/postgres.h)),)
  $(error $(PG_CONFIG) or the PostgreSQL server headers are missing: `make deps` installs what is needed)
endif

EXTENSION = gpujoin
MODULE_big = gpujoin
# The DATA of `make demo` is the user's file; PGXS's is always this.
override DATA = $(wildcard sql/gpujoin--*.sql)
REGRESS = $(patsubst sql/%.sql,%,$(filter-out $(DATA),$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=gpujoin

ENGINE_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/engine/*.cpp src/engine/*/*.cpp))
CPU_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/cpu/*.cpp src/cpu/*/*.cpp))
# What gpujoin.so has of the service, to talk to it; and all that is the program's.
PROTOCOL_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/service/protocol/*.cpp))
SERVICE_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/service/*.cpp src/service/*/*.cpp))
PG_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/pg/*.cpp src/pg/*/*.cpp))
OBJS = $(ENGINE_OBJS) $(PROTOCOL_OBJS) $(PG_OBJS)
ALL_OBJS = $(sort $(OBJS) $(CPU_OBJS) $(SERVICE_OBJS))
EXTRA_CLEAN = build $(ALL_OBJS) $(ALL_OBJS:.o=.d) gpujoin_service gpujoin_cpu.so gpujoin_cuda.so
# PostgreSQL loads libraries so that each sees the symbols of all: only what it calls itself is exported. Everything is
# compiled hidden but what is marked PGDLLEXPORT; the list hides the rest, templates of the standard library, which
# declares itself visible.
SHLIB_LINK = -lstdc++ -lpthread -ldl -Wl,--version-script=src/pg/exports.map
# No bitcode: none of the functions is worth inlining into an expression.
override with_llvm = no

include $(PGXS)

ifeq ($(filter clean uninstall installcheck,$(MAKECMDGOALS)),)
  ifeq ($(shell command -v $(CXX) 2>/dev/null),)
    $(error the C++ compiler $(CXX) is missing: `make deps` installs what is needed)
  endif
  HWY_MAJOR := $(shell echo HWY_MAJOR | $(CXX) -xc++ -E -P -include hwy/highway.h - 2>/dev/null | tail -n 1)
  ifneq ($(shell test '$(HWY_MAJOR)' -ge 1 2>/dev/null && echo yes),yes)
    $(error the library Highway (libhwy-dev), 1.0 or later, is missing: `make deps` installs what is needed)
  endif
endif

# Exactness: no fused multiply-add, never -ffast-math, never -march=native.
# Only src/pg sees PostgreSQL's headers. Warnings are errors in `make check` (WERROR=1), not where a later compiler has
# new ones.
# Debugging information is what backtraces need: all of it takes a third of the time to compile. DEBUG_INFO=-g has it.
DEBUG_INFO ?= -g1
OUR_CXXFLAGS = -std=c++20 -Wall -Wextra $(if $(WERROR),-Werror) -ffp-contract=off -fno-math-errno -fvisibility=hidden \
  $(DEBUG_INFO) -Isrc -MMD -MP
ENGINE_FLAGS = -O3 -DNDEBUG $(filter-out -I%,$(CPPFLAGS))
PG_FLAGS = $(patsubst -I/%,-isystem/%,$(CPPFLAGS))
$(ENGINE_OBJS) $(CPU_OBJS) $(SERVICE_OBJS): ROOM_FLAGS = $(ENGINE_FLAGS)
$(PG_OBJS): ROOM_FLAGS = $(PG_FLAGS) -include build/pg.h

$(ALL_OBJS): %.o: %.cpp Makefile
	$(CXX) $(CXXFLAGS) $(OUR_CXXFLAGS) $(ROOM_FLAGS) -c -o $@ $<

-include $(ALL_OBJS:.o=.d) build/pg.h.d

# PostgreSQL's headers, which each file of src/pg begins with, compiled once.
$(PG_OBJS): build/pg.h.gch
build/pg.h.gch: Makefile
	@mkdir -p build && echo '#include "pg/compat.h"' >build/pg.h
	$(CXX) $(CXXFLAGS) $(OUR_CXXFLAGS) $(PG_FLAGS) -MF build/pg.h.d -x c++-header -o $@ build/pg.h

# The CPU engine, which gpujoin.so opens with a session's first join of its own: Highway takes milliseconds to load.
gpujoin_cpu.so: $(CPU_OBJS) $(ENGINE_OBJS)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -shared -Wl,--version-script=src/engine/exports.map -o $@ $^ -lhwy_contrib -lhwy -lpthread -ldl

# The program that runs joins for all sessions. It lies beside gpujoin.so.
gpujoin_service: $(SERVICE_OBJS) $(CPU_OBJS) $(ENGINE_OBJS)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ -lhwy_contrib -lhwy -lpthread -ldl
all: gpujoin_cpu.so gpujoin_service

# The CUDA engine, an object of its own that gpujoin.so opens at run time: machine code for the
# architectures of CUDA_ARCH that nvcc knows, in ascending order, and PTX of the first one for all others that come later.
# They are those of this machine's cards, where it has some.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
ifndef CUDA_ARCH
CUDA_ARCH := $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -nu),80 86 89 90 100 120)
endif
KERNEL_OBJS = $(patsubst %.cu,build/%.o,$(wildcard cuda/*.cu cuda/*/*.cu))
CUDA_HOST_OBJS = $(patsubst %.cpp,build/%.o,$(wildcard cuda/*.cpp cuda/*/*.cpp))
CUDA_OBJS = $(KERNEL_OBJS) $(CUDA_HOST_OBJS)
CUDA_FLAGS = -std=c++20 -O3 -DNDEBUG --fmad=false -Isrc -I. \
  -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-math-errno,-Wall,-Wextra
CUDA_WERROR = $(if $(WERROR),-Werror all-warnings -Xcompiler=-Werror)

ifeq ($(NVCC),)
all: ; @echo 'nvcc not found: building without gpujoin_cuda.so (the CPU engine serves every join)'
else ifeq ($(filter clean uninstall,$(MAKECMDGOALS)),)
all: gpujoin_cuda.so

KNOWN_ARCH := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
ARCH := $(filter $(KNOWN_ARCH),$(CUDA_ARCH))
ifeq ($(ARCH),)
  $(error nvcc knows none of CUDA_ARCH = $(CUDA_ARCH), only $(KNOWN_ARCH))
endif
ARCH_FLAGS := $(foreach a,$(ARCH),-gencode arch=compute_$a,code=sm_$a) \
  -gencode arch=compute_$(firstword $(ARCH)),code=compute_$(firstword $(ARCH))

$(KERNEL_OBJS): build/cuda/%.o: cuda/%.cu build/cuda/flags
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_FLAGS) $(CUDA_WERROR) $(ARCH_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# What has no kernels is compiled as the rest is, in half the time. The list of architectures is as nvcc defines it.
comma := ,
space := $(subst ,, )
CUDA_INCLUDE := $(dir $(shell realpath $(lastword $(NVCC))))../include
CUDA_HOST_FLAGS = $(ENGINE_FLAGS) -I. -idirafter $(CUDA_INCLUDE) -D__CUDA_ARCH_LIST__=$(subst $(space),$(comma),$(ARCH:%=%0))
$(CUDA_HOST_OBJS): build/cuda/%.o: cuda/%.cpp build/cuda/flags
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(OUR_CXXFLAGS) $(CUDA_HOST_FLAGS) -c -o $@ $<

# nvcc links the CUDA runtime statically; the entry is all that the object shows of itself.
gpujoin_cuda.so: $(CUDA_OBJS) $(ENGINE_OBJS)
	$(NVCC) $(ARCH_FLAGS) --shared -Xlinker --version-script=src/engine/exports.map -o $@ $(filter %.o,$^)

# An engine whose calls of CUDA can be made to fail, for the tests (see test/device/faults.cu).
FALLIBLE = cudaMallocAsync cudaFreeAsync cudaHostAlloc cudaStreamCreateWithFlags cudaStreamDestroy \
  cudaEventCreateWithFlags cudaEventDestroy cudaEventRecord cudaEventQuery cudaEventSynchronize cudaMemcpyAsync \
  cudaMemcpyPeerAsync cudaMemPoolSetAccess cudaDeviceCanAccessPeer cudaDeviceGetAttribute cudaMemsetAsync cudaStreamSynchronize
build/cuda/gpujoin_cuda_faults.so: test/device/faults.cu $(CUDA_OBJS) $(ENGINE_OBJS)
	$(NVCC) $(filter-out -Xcompiler=%,$(CUDA_FLAGS)) -Xcompiler=-fPIC $(ARCH_FLAGS) --shared \
	  $(addprefix -Xlinker --wrap=,$(FALLIBLE)) -o $@ $^

build/cuda/flags: FORCE
	@mkdir -p $(@D); echo '$(NVCC) $(CUDA_FLAGS) $(ARCH_FLAGS)' | cmp -s - $@ || \
	  echo '$(NVCC) $(CUDA_FLAGS) $(ARCH_FLAGS)' >$@
FORCE:
.PHONY: FORCE

-include $(CUDA_OBJS:.o=.d)
endif

install: install-beside
install-beside: all installdirs
	$(INSTALL_PROGRAM) gpujoin_service '$(DESTDIR)$(pkglibdir)/'
	$(INSTALL_SHLIB) gpujoin_cpu.so '$(DESTDIR)$(pkglibdir)/'
	if [ -f gpujoin_cuda.so ]; then $(INSTALL_SHLIB) gpujoin_cuda.so '$(DESTDIR)$(pkglibdir)/'; fi
uninstall: uninstall-beside
uninstall-beside:
	rm -f $(foreach file,gpujoin_service gpujoin_cpu.so gpujoin_cuda.so,'$(DESTDIR)$(pkglibdir)/$(file)')
.PHONY: install-beside uninstall-beside

# What an image holds for servers that load extensions from one, as CloudNativePG does with PostgreSQL 18 and later.
VOLUME ?= build/volume
volume: all
	rm -rf '$(VOLUME)'
	$(MAKE) --no-print-directory install DESTDIR='$(abspath $(VOLUME))/stage' >/dev/null
	mkdir -p '$(VOLUME)/share'
	mv '$(VOLUME)/stage$(datadir)/extension' '$(VOLUME)/share/'
	mv '$(VOLUME)/stage$(pkglibdir)' '$(VOLUME)/lib'
	cp -L $$(ldd gpujoin_cpu.so | awk '/libhwy/ { print $$3 }') '$(VOLUME)/lib/'
	rm -r '$(VOLUME)/stage'
.PHONY: volume

endif
