// Not ROS: the few names of ros2_control that the example uses, so that it compiles and runs on a machine without ROS.
#pragma once

#include <string>
#include <vector>

namespace rclcpp
{
struct Time {};
struct Duration {};
}  // namespace rclcpp

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };

struct InterfaceConfiguration
{
    interface_configuration_type type = interface_configuration_type::NONE;
    std::vector<std::string> names;
};

struct LoanedInterface
{
    double * value;
    double get_value() const { return *value; }
    bool set_value(double x)
    {
        *value = x;
        return true;
    }
};

class ControllerInterface
{
public:
    virtual ~ControllerInterface() = default;
    virtual CallbackReturn on_init() = 0;
    virtual InterfaceConfiguration command_interface_configuration() const = 0;
    virtual InterfaceConfiguration state_interface_configuration() const = 0;
    virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;

    // The controller manager of ROS lends the interfaces; here whoever runs the example does.
    std::vector<LoanedInterface> command_interfaces_, state_interfaces_;
};
}  // namespace controller_interface
